"""A convolutional network on digits, trained with Opacus: options, train, test and main, as people write it."""

import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from opacus import PrivacyEngine
from sklearn.datasets import load_digits
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset


class SampleConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3)
        self.fc1 = nn.Linear(16 * 2 * 2, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.conv1(x)), 2, 1)
        x = functional.max_pool2d(functional.relu(self.conv2(x)), 2, 2)
        x = x.view(-1, 16 * 2 * 2)
        return self.fc2(functional.relu(self.fc1(x)))


def train(args, model, device, train_loader, optimizer, privacy_engine, epoch):
    model.train()
    criterion = nn.CrossEntropyLoss()
    losses = []
    for data, target in train_loader:
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        output = model(data)
        loss = criterion(output, target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    epsilon = privacy_engine.get_epsilon(delta=args.delta)
    print(f"Epoch {epoch}  loss {np.mean(losses):.4f}  epsilon {epsilon:.2f}")
    return epsilon


def test(model, device, test_loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for data, target in test_loader:
            output = model(data.to(device))
            correct += output.argmax(dim=1).eq(target.to(device)).sum().item()
    return correct / len(test_loader.dataset)


def main(words=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=0.5)
    parser.add_argument("--sigma", type=float, default=1.0)
    parser.add_argument("--max-per-sample-grad-norm", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-4)
    args = parser.parse_args(words)

    x, y = load_digits(return_X_y=True)
    x, y = torch.tensor(x, dtype=torch.float32).view(-1, 1, 8, 8) / 16, torch.tensor(y)
    train_loader = DataLoader(TensorDataset(x[:1400], y[:1400]), batch_size=args.batch_size, shuffle=True)
    test_loader = DataLoader(TensorDataset(x[1400:], y[1400:]), batch_size=1024)

    torch.manual_seed(0)
    model = SampleConvNet()
    optimizer = optim.SGD(model.parameters(), lr=args.lr, momentum=0)
    privacy_engine = PrivacyEngine(accountant="rdp")
    model, optimizer, train_loader = privacy_engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=train_loader,
        noise_multiplier=args.sigma,
        max_grad_norm=args.max_per_sample_grad_norm,
    )
    for epoch in range(1, args.epochs + 1):
        epsilon = train(args, model, "cpu", train_loader, optimizer, privacy_engine, epoch)
    accuracy = test(model, "cpu", test_loader)
    print(f"Accuracy {accuracy:.3f}")
    return {"epsilon": epsilon, "accuracy": accuracy, "names": list(model.state_dict())}


if __name__ == "__main__":
    main()
