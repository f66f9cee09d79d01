"""Names by their letters, with an LSTM: the last step classifies, with Opacus."""

import torch
import torch.nn as nn
from opacus import PrivacyEngine
from opacus.layers import DPLSTM
from torch.utils.data import DataLoader, TensorDataset


class CharNN(nn.Module):
    def __init__(self, letters, classes):
        super().__init__()
        self.embedding = nn.Embedding(letters, 8)
        self.lstm = DPLSTM(8, 12, batch_first=True)
        self.out_layer = nn.Linear(12, classes)

    def forward(self, x):
        outputs, _ = self.lstm(self.embedding(x))
        return self.out_layer(outputs[:, -1])


def main(epochs=1):
    torch.manual_seed(0)
    names = torch.randint(0, 20, (150, 7))
    loader = DataLoader(TensorDataset(names, (names > 9).sum(1) % 3), batch_size=30, drop_last=True)
    model = CharNN(20, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    privacy_engine = PrivacyEngine(accountant="rdp")
    model, optimizer, loader = privacy_engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=loader,
        max_grad_norm=1.5,
        noise_multiplier=1.0,
    )
    criterion = nn.CrossEntropyLoss()
    for _ in range(epochs):
        for x, y in loader:
            logits = model(x)
            loss = criterion(logits, y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    return {"epsilon": privacy_engine.get_epsilon(delta=1e-3), "steps": len(privacy_engine.accountant)}


if __name__ == "__main__":
    print(main())
