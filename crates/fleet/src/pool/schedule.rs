//! The minimum of a pool at a moment, from its schedules.

use api::fleet::{Schedule, Weekday};
use change::{Maintenance, Moment, Now, Window};
use std::time::Duration;

/// Schedules change on the minute, and a pool is looked at again so often at least while it has some.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// The highest minimum of the schedules that hold now, and when to look again. A schedule that cannot be read never holds.
pub(super) fn minimum(schedules: &[Schedule], now: Now) -> (i32, Option<Moment>) {
    let open = schedules.iter().filter(|schedule| windows(schedule).at(now.wall) == Window::Open);
    let minimum = open.map(|schedule| schedule.min_replicas).max().unwrap_or_default();
    (minimum, (!schedules.is_empty()).then(|| now.monotonic.after(LOOK_AGAIN)))
}

/// What is wrong with schedules that never hold because they cannot be read.
pub(super) fn invalid(schedules: &[Schedule]) -> Option<String> {
    let said = schedules.iter().enumerate().filter_map(|(number, schedule)| {
        let why = read(schedule).1?;
        Some(format!("schedules[{number}] ({}-{} {}): {why}", schedule.from, schedule.to, schedule.time_zone))
    });
    let said: Vec<String> = said.collect();
    (!said.is_empty()).then(|| {
        format!("spec.scaling.{}; until it is corrected, this minimum is not kept", said.join("; spec.scaling."))
    })
}

fn windows(schedule: &Schedule) -> Maintenance {
    read(schedule).0
}

/// The hours of a schedule, or why they cannot be read.
fn read(schedule: &Schedule) -> (Maintenance, Option<String>) {
    const ALL: [Weekday; 7] =
        [Weekday::Mon, Weekday::Tue, Weekday::Wed, Weekday::Thu, Weekday::Fri, Weekday::Sat, Weekday::Sun];
    let days = if schedule.days.is_empty() { &ALL[..] } else { &schedule.days };
    let days: Vec<String> = days.iter().map(|day| format!("{day:?}")).collect();
    let text = format!("{} {}-{} {}", days.join(","), schedule.from, schedule.to, schedule.time_zone);
    Maintenance::read(Some(&text))
}

#[cfg(test)]
mod tests {
    use super::minimum;
    use api::fleet::{Schedule, Weekday};
    use change::{Moment, Now};

    #[test]
    fn the_highest_schedule_that_holds_counts_in_its_time_zone() {
        let schedule = |days: &[Weekday], from: &str, to: &str, zone: &str, min_replicas: i32| Schedule {
            days: days.to_vec(),
            from: from.into(),
            to: to.into(),
            time_zone: zone.into(),
            min_replicas,
        };
        let all = [
            schedule(&[Weekday::Mon, Weekday::Fri], "07:00", "19:00", "Europe/Berlin", 5),
            schedule(&[], "22:00", "04:00", "UTC", 2),
            schedule(&[], "00:00", "23:59", "Mars/Olympus", 100),
        ];
        let at = |wall: &str| minimum(&all, Now { wall: wall.parse().unwrap(), monotonic: Moment::default() }).0;
        // 2026-11-16 is a Monday; Berlin is one hour ahead of UTC.
        assert_eq!((at("2026-11-16T05:30:00Z"), at("2026-11-16T06:30:00Z")), (0, 5));
        assert_eq!((at("2026-11-16T23:00:00Z"), at("2026-11-17T03:00:00Z"), at("2026-11-17T12:00:00Z")), (2, 2, 0));
    }
}
