//! The ports for secrets: passwords, tokens, random keys
