"""Words, their embedding and one output: reviews padded by a collate function, with Opacus."""

import torch
import torch.nn as nn
import torch.optim as optim
from opacus import PrivacyEngine
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

LENGTH = 16


def reviews(count):
    rng = torch.Generator().manual_seed(0)
    for number in range(count):
        label = number % 2
        length = int(torch.randint(8, 24, (1,), generator=rng))
        yield {"words": torch.randint(1 + 20 * label, 30 + 20 * label, (length,), generator=rng), "label": label}


def padded_collate(batch):
    words = pad_sequence([one["words"][:LENGTH] for one in batch], batch_first=True)
    words = nn.functional.pad(words, (0, LENGTH - words.shape[1]))
    return words, torch.tensor([float(one["label"]) for one in batch])


class SampleNet(nn.Module):
    def __init__(self, vocab_size):
        super().__init__()
        self.emb = nn.Embedding(vocab_size, 16)
        self.pool = nn.AdaptiveAvgPool1d(1)
        self.fc = nn.Linear(16, 1)

    def forward(self, x):
        x = self.emb(x).transpose(1, 2)
        return self.fc(self.pool(x).squeeze(2))


def main(epochs=2):
    torch.manual_seed(0)
    loader = DataLoader(list(reviews(200)), batch_size=40, collate_fn=padded_collate, shuffle=True)
    model = SampleNet(60)
    optimizer = optim.Adam(model.parameters(), lr=0.02)
    privacy_engine = PrivacyEngine()
    model, optimizer, loader = privacy_engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=loader,
        noise_multiplier=0.8,
        max_grad_norm=1.0,
        poisson_sampling=True,
    )
    criterion = nn.BCEWithLogitsLoss()
    model = model.train()
    for _ in range(epochs):
        for data, label in loader:
            optimizer.zero_grad()
            predictions = model(data).squeeze(1)
            loss = criterion(predictions, label)
            loss.backward()
            optimizer.step()
    return {"epsilon": privacy_engine.get_epsilon(1e-3)}


if __name__ == "__main__":
    print(main())
