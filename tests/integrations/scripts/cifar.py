"""A network with batch normalisation, large batches in little memory, a schedule and checkpoints, with Opacus."""

import tempfile
from pathlib import Path

import torch
import torch.nn as nn
import torch.optim as optim
from opacus import PrivacyEngine
from opacus.utils.batch_memory_manager import BatchMemoryManager
from opacus.validators import ModuleValidator
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    def __init__(self, count):
        rng = torch.Generator().manual_seed(0)
        self.y = torch.arange(count) % 3
        self.x = torch.randn(count, 3, 8, 8, generator=rng) + self.y[:, None, None, None]

    def __len__(self):
        return len(self.y)

    def __getitem__(self, number):
        return self.x[number], int(self.y[number])


def convnet():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 3),
    )


def accuracy(preds, labels):
    return (preds == labels).mean()


def train(model, train_loader, optimizer):
    model.train()
    criterion = nn.CrossEntropyLoss()
    losses, top1_acc = [], []
    with BatchMemoryManager(data_loader=train_loader, max_physical_batch_size=20, optimizer=optimizer) as memory_safe:
        for images, target in memory_safe:
            optimizer.zero_grad()
            output = model(images)
            loss = criterion(output, target)
            preds = output.detach().argmax(dim=1).numpy()
            losses.append(loss.item())
            if len(preds):
                top1_acc.append(accuracy(preds, target.detach().numpy()))
            loss.backward()
            optimizer.step()
    return sum(top1_acc) / len(top1_acc)


def main(epochs=2):
    torch.manual_seed(0)
    train_loader = DataLoader(Pictures(240), batch_size=60)
    model = convnet()
    if not ModuleValidator.is_valid(model):
        model = ModuleValidator.fix(model)
    optimizer = optim.RMSprop(model.parameters(), lr=0.01)
    privacy_engine = PrivacyEngine(accountant="rdp")
    model, optimizer, train_loader = privacy_engine.make_private_with_epsilon(
        module=model,
        optimizer=optimizer,
        data_loader=train_loader,
        target_epsilon=3.0,
        target_delta=1e-3,
        epochs=epochs,
        max_grad_norm=1.2,
    )
    scheduler = optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
    for _ in range(epochs):
        train(model, train_loader, optimizer)
        scheduler.step()
    spent = privacy_engine.get_epsilon(1e-3)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint.tar"
        privacy_engine.save_checkpoint(path=path, module=model, optimizer=optimizer)
        later = PrivacyEngine(accountant="rdp")
        later.load_checkpoint(path=path, module=model, optimizer=optimizer)
    return {"epsilon": spent, "loaded": later.get_epsilon(1e-3), "lr": optimizer.param_groups[0]["lr"]}


if __name__ == "__main__":
    print(main())
