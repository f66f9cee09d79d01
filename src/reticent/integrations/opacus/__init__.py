"""Opacus scripts with one import changed: `from reticent.integrations.opacus import PrivacyEngine`."""

from reticent.integrations.opacus.engine import PrivacyEngine
from reticent.integrations.opacus.module import GradSampleModule
from reticent.integrations.opacus.utils.batch_memory_manager import BatchMemoryManager
from reticent.integrations.opacus.validators import ModuleValidator

__all__ = ["BatchMemoryManager", "GradSampleModule", "ModuleValidator", "PrivacyEngine"]
