//! Under which names a product writes. Each product has its own, so that none is taken for another.

/// The names of one product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Its field manager.
    pub field_manager: &'static str,
    /// The label, key and value, on every object it manages.
    pub label: (&'static str, &'static str),
    /// The prefix of the annotations it reads and writes.
    pub annotation_prefix: &'static str,
    /// The Lease of its leader.
    pub lease: &'static str,
}

impl Identity {
    /// The label as a selector.
    pub fn selector(&self) -> String {
        format!("{}={}", self.label.0, self.label.1)
    }
}

#[cfg(test)]
mod tests {
    use super::Identity;

    #[test]
    fn the_selector_finds_what_carries_the_label() {
        let identity =
            Identity { field_manager: "m", label: ("example.com/a", "b"), annotation_prefix: "p", lease: "l" };
        assert_eq!(identity.selector(), "example.com/a=b");
    }
}
