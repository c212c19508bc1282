//! The simplex method of J. A. Nelder and R. Mead (The Computer Journal 7, 1965).
//!
//! In n dimensions it has n + 1 corners. Each step moves the worst of them through the centre of
//! the others: as far again; twice as far where that is the best so far; half as far, on whichever
//! side is better, where it would be the worst again. Where none of these helps, all corners move
//! half-way towards the best.

/// A corner of the simplex, as its coordinates, and the cost there.
type Corner = (Vec<f64>, f64);

/// Looks for the point of least cost from these corners, for so many steps at most, or until all
/// corners cost the same, and returns the best point that was seen.
///
/// # Errors
/// The first error that computing a cost gives ends the search.
pub(crate) fn least<E>(
    corners: Vec<Vec<f64>>,
    steps: u64,
    mut cost: impl FnMut(&[f64]) -> Result<f64, E>,
) -> Result<Vec<f64>, E> {
    let mut simplex: Vec<Corner> = Vec::with_capacity(corners.len());
    for corner in corners {
        let value = cost(&corner)?;
        simplex.push((corner, value));
    }
    let by_cost = |one: &Corner, other: &Corner| one.1.total_cmp(&other.1);
    simplex.sort_by(by_cost);
    for _ in 0..steps {
        if simplex.len() < 2 || deviation(&simplex) < f64::EPSILON {
            break;
        }
        if let Some(better) = moved(&simplex, &mut cost)? {
            simplex.pop();
            simplex.push(better);
        } else {
            let best = simplex[0].0.clone();
            for (corner, value) in &mut simplex[1..] {
                *corner = between(&best, corner, 0.5);
                *value = cost(corner)?;
            }
        }
        simplex.sort_by(by_cost);
    }
    Ok(simplex.swap_remove(0).0)
}

/// Finds a better place for the worst of sorted corners, if there is one on its way through the
/// centre of the others.
fn moved<E>(
    simplex: &[Corner],
    cost: &mut impl FnMut(&[f64]) -> Result<f64, E>,
) -> Result<Option<Corner>, E> {
    let Some(((worst, highest), others)) = simplex.split_last() else {
        return Ok(None);
    };
    let (least, most) = (others[0].1, others[others.len() - 1].1);
    let centre = centre(others);
    let mut at = |place: Vec<f64>| cost(&place).map(|value| (place, value));
    let reflected = at(between(&centre, worst, -1.0))?;
    if reflected.1 < least {
        let expanded = at(between(&centre, &reflected.0, 2.0))?;
        let further = expanded.1 < reflected.1;
        return Ok(Some(if further { expanded } else { reflected }));
    }
    if reflected.1 < most {
        return Ok(Some(reflected));
    }
    if reflected.1 < *highest {
        let outside = at(between(&centre, &reflected.0, 0.5))?;
        return Ok((outside.1 <= reflected.1).then_some(outside));
    }
    let inside = at(between(&centre, worst, 0.5))?;
    Ok((inside.1 < *highest).then_some(inside))
}

/// The point in the middle of these corners: the mean of each coordinate.
fn centre(corners: &[Corner]) -> Vec<f64> {
    let share = 1.0 / corners.len() as f64;
    let sum = |axis: usize| corners.iter().map(|(corner, _)| corner[axis]).sum::<f64>();
    (0..corners[0].0.len())
        .map(|axis| sum(axis) * share)
        .collect()
}

/// The point that lies `share` of the way from `one` to `other`.
fn between(one: &[f64], other: &[f64], share: f64) -> Vec<f64> {
    let axes = one.iter().zip(other);
    axes.map(|(one, other)| one + (other - one) * share)
        .collect()
}

/// The standard deviation of the corners' costs.
fn deviation(simplex: &[Corner]) -> f64 {
    let count = simplex.len() as f64;
    let mean = simplex.iter().map(|(_, cost)| cost).sum::<f64>() / count;
    let squares = simplex.iter().map(|(_, cost)| (cost - mean).powi(2));
    (squares.sum::<f64>() / (count - 1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::least;
    use std::convert::Infallible;

    fn find(start: &[f64], cost: impl Fn(&[f64]) -> f64) -> Vec<f64> {
        let mut corners = vec![start.to_vec()];
        for axis in 0..start.len() {
            let mut corner = start.to_vec();
            corner[axis] += 0.5;
            corners.push(corner);
        }
        let found = least(corners, 2000, |point| Ok::<_, Infallible>(cost(point)));
        found.unwrap_or_else(|never| match never {})
    }

    #[test]
    fn valleys_are_found() {
        // H. H. Rosenbrock (The Computer Journal 3, 1960): the authors' own example.
        let banana = |p: &[f64]| 100.0 * (p[1] - p[0] * p[0]).powi(2) + (1.0 - p[0]).powi(2);
        let found = find(&[-1.2, 1.0], banana);
        assert!(
            found.iter().all(|axis| (axis - 1.0).abs() < 1e-6),
            "{found:?}"
        );
        let bowl = |p: &[f64]| p.iter().map(|axis| (axis - 3.0).powi(2)).sum();
        for dimensions in 1..=6 {
            let found = find(&vec![0.0; dimensions], bowl);
            assert!(
                found.iter().all(|axis| (axis - 3.0).abs() < 1e-4),
                "{found:?}"
            );
        }
    }

    #[test]
    fn an_error_ends_the_search() {
        let mut left = 5;
        let found = least(vec![vec![0.0], vec![1.0]], 100, |point| {
            left -= 1;
            if left > 0 {
                Ok(point[0] * point[0])
            } else {
                Err("enough")
            }
        });
        assert_eq!(found, Err("enough"));
        assert_eq!(left, 0);
    }
}
