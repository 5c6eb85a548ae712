//! Numbers drawn in one line.

/// A line of blocks, each as high as its part of the highest; a blank where there is nothing.
pub(super) fn sparkline(values: &[f64]) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = values.iter().copied().fold(0.0, f64::max);
    let block = |value: &f64| {
        if *value <= 0.0 || most <= 0.0 {
            return ' ';
        }
        let eighths = (value / most * 8.0).ceil().clamp(1.0, 8.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is from 1 to 8"
        )]
        let at = eighths as usize - 1;
        BLOCKS[at]
    };
    values.iter().map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparkline_is_as_high_as_the_highest_and_blank_where_there_is_nothing() {
        assert_eq!(sparkline(&[0.0, 1.0, 4.0, 8.0]), " ▁▄█");
        assert_eq!(sparkline(&[0.0, 0.0]), "  ");
        assert_eq!(sparkline(&[]), "");
    }
}
