//! What a person sees of single situations.
