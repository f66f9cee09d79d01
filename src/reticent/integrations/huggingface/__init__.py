"""Hugging Face: tokenised datasets, a private Trainer, a folder for the Hub with the guarantee in its model card."""

from reticent.integrations.huggingface.card import model_card, save_pretrained
from reticent.integrations.huggingface.reading import examples
from reticent.integrations.huggingface.trainer import ReticentTrainer
from reticent.losses.heads import HeadLoss, head_loss

__all__ = ["HeadLoss", "ReticentTrainer", "examples", "head_loss", "model_card", "save_pretrained"]
