pub fn check(_w: &crate::World) -> Vec<String> {
    vec![]
}
