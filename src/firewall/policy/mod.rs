//! Stage 1: Cedar policies over the facts.
