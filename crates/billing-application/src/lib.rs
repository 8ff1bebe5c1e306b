//! The use cases of usage billing: one transaction each
