"""Tables: what their columns may hold is declared, and each cell becomes numbers by itself."""
