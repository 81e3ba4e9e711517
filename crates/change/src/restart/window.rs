//! Maintenance windows: the annotation `maintenance-window`, such as `Sat,Sun 01:00-05:00 Europe/Berlin; Wed 02:00-04:00 UTC`.

use jiff::civil::{Date, Time, Weekday};
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, ToSpan};

/// The longest annotation in bytes.
const MAX_BYTES: usize = 256;
/// How many days ahead an opening is searched for: where the clock is set forward, a weekly window may not exist for a week.
const DAYS_AHEAD: i64 = 15;
const DAYS: [(&str, Weekday); 7] = [
    ("monday", Weekday::Monday),
    ("tuesday", Weekday::Tuesday),
    ("wednesday", Weekday::Wednesday),
    ("thursday", Weekday::Thursday),
    ("friday", Weekday::Friday),
    ("saturday", Weekday::Saturday),
    ("sunday", Weekday::Sunday),
];

/// When nodes may restart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Maintenance {
    /// At any time: no window is defined.
    #[default]
    Always,
    /// In these windows.
    Windows(Vec<Weekly>),
    /// Never, because the annotation cannot be read.
    Unclear,
}

/// One window that comes back every week.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weekly {
    days: Vec<Weekday>,
    start: Time,
    end: End,
    zone: TimeZone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    SameDay(Time),
    NextDay(Time),
}

/// Whether nodes may restart now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Window {
    /// They may.
    #[default]
    Open,
    /// Not before this moment; `None` if no window opens in the next days.
    Closed {
        /// When the next window opens.
        opens: Option<Timestamp>,
    },
}

impl Maintenance {
    /// Reads the annotation; a broken one is closed for ever, and the text says why.
    pub fn read(annotation: Option<&str>) -> (Maintenance, Option<String>) {
        match annotation.map(str::trim) {
            None => (Maintenance::Always, None),
            Some(text) => match parse(text) {
                Ok(windows) => (Maintenance::Windows(windows), None),
                Err(why) => (Maintenance::Unclear, Some(why)),
            },
        }
    }

    /// Whether nodes may restart at a moment.
    pub fn at(&self, now: Timestamp) -> Window {
        let windows = match self {
            Maintenance::Always => return Window::Open,
            Maintenance::Unclear => return Window::Closed { opens: None },
            Maintenance::Windows(windows) => windows,
        };
        let mut spans = windows.iter().flat_map(|window| window.spans_around(now));
        if spans.clone().any(|(start, end)| start <= now && now < end) {
            return Window::Open;
        }
        let opens = spans.by_ref().map(|(start, _)| start).filter(|start| *start > now).min();
        Window::Closed { opens }
    }

    /// A moment as the clocks of the first window show it.
    pub fn shown(&self, moment: Timestamp) -> String {
        let zone = match self {
            Maintenance::Windows(windows) => windows.first().map_or(TimeZone::UTC, |window| window.zone.clone()),
            Maintenance::Always | Maintenance::Unclear => TimeZone::UTC,
        };
        let name = zone.iana_name().unwrap_or("UTC").to_owned();
        format!("{} {name}", moment.to_zoned(zone).strftime("%a %Y-%m-%d %H:%M"))
    }
}

impl Weekly {
    /// From when to when it is open, from the day before a moment on. What the clocks skip is not open; what they show twice begins and ends
    /// when they show it first.
    fn spans_around(&self, now: Timestamp) -> impl Iterator<Item = (Timestamp, Timestamp)> + Clone {
        let today = now.to_zoned(self.zone.clone()).date();
        let dates = (-1..DAYS_AHEAD).filter_map(move |offset| today.checked_add(offset.days()).ok());
        dates.filter(|date| self.days.contains(&date.weekday())).filter_map(|date| self.span(date))
    }

    fn span(&self, date: Date) -> Option<(Timestamp, Timestamp)> {
        let (end_date, end) = match self.end {
            End::SameDay(time) => (date, time),
            End::NextDay(time) => (date.tomorrow().ok()?, time),
        };
        let span = (first_moment(date, self.start, &self.zone)?, first_moment(end_date, end, &self.zone)?);
        Some(span).filter(|(start, end)| start < end)
    }
}

/// When the clocks first show this time or, if they skip it, a later one.
fn first_moment(date: Date, time: Time, zone: &TimeZone) -> Option<Timestamp> {
    let wanted = date.to_datetime(time);
    match zone.to_ambiguous_timestamp(wanted).offset() {
        AmbiguousOffset::Unambiguous { offset } | AmbiguousOffset::Fold { before: offset, .. } => {
            offset.to_timestamp(wanted).ok()
        }
        AmbiguousOffset::Gap { before, .. } => {
            let after = before.to_timestamp(wanted).ok()?.checked_add(1.nanosecond()).ok()?;
            zone.preceding(after).next().map(|transition| transition.timestamp())
        }
    }
}

fn parse(text: &str) -> Result<Vec<Weekly>, String> {
    if text.len() > MAX_BYTES {
        return Err(format!("it has {} bytes, at most {MAX_BYTES} are allowed", text.len()));
    }
    let windows = text.split(';').map(str::trim).filter(|window| !window.is_empty()).map(parse_window);
    let windows: Vec<Weekly> = windows.collect::<Result<_, _>>()?;
    if windows.is_empty() { Err("it names no window".to_owned()) } else { Ok(windows) }
}

fn parse_window(text: &str) -> Result<Weekly, String> {
    let in_window = |why: String| format!("{text:?}: {why}; write it like Sat,Sun 01:00-05:00 Europe/Berlin");
    let parts: Vec<&str> = text.split_whitespace().collect();
    let [days, times, zone] = parts.as_slice() else {
        return Err(in_window(match parts.len() {
            2 => "the time zone is missing".to_owned(),
            count => format!("days, times and time zone are three words, these are {count}"),
        }));
    };
    let days = parse_days(days).map_err(in_window)?;
    let (start, end) = times.split_once('-').ok_or_else(|| in_window(format!("{times:?} has no end")))?;
    let start_time = parse_time(start).map_err(in_window)?;
    let end_time = match end {
        "24:00" => End::NextDay(Time::midnight()),
        end => match parse_time(end).map_err(in_window)? {
            time if time > start_time => End::SameDay(time),
            time if time == start_time => {
                return Err(in_window("it ends when it starts; 00:00-24:00 is the whole day".to_owned()));
            }
            time => End::NextDay(time),
        },
    };
    let unknown = |_| in_window(format!("{zone:?} is not the name of a time zone"));
    let zone = TimeZoneDatabase::bundled().get(zone).map_err(unknown)?;
    Ok(Weekly { days, start: start_time, end: end_time, zone })
}

fn parse_days(text: &str) -> Result<Vec<Weekday>, String> {
    if text.eq_ignore_ascii_case("daily") {
        return Ok(DAYS.iter().map(|(_, day)| *day).collect());
    }
    let mut days = Vec::new();
    for part in text.split(',') {
        match part.split_once('-') {
            None => days.push(parse_day(part)?),
            Some((first, last)) => {
                let (first, last) = (parse_day(first)?, parse_day(last)?);
                let all = std::iter::successors(Some(first), |day| Some(day.next())).take(7);
                days.extend(all.take_while(|day| *day != last).chain([last]));
            }
        }
    }
    Ok(days)
}

fn parse_day(text: &str) -> Result<Weekday, String> {
    let lower = text.to_ascii_lowercase();
    let found = DAYS.iter().find(|(name, _)| lower == *name || (lower.len() == 3 && name.starts_with(&lower)));
    found.map(|(_, day)| *day).ok_or_else(|| format!("{text:?} is not a day such as Mon or Mon-Fri, or daily"))
}

fn parse_time(text: &str) -> Result<Time, String> {
    let wrong = || format!("{text:?} is not a time such as 01:00");
    let (hour, minute) = text.split_once(':').ok_or_else(wrong)?;
    let number = |digits: &str| {
        (digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().ok()).flatten()
    };
    let (hour, minute) = number(hour).zip(number(minute)).ok_or_else(wrong)?;
    Time::new(hour, minute, 0, 0).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::{Maintenance, Window};
    use expect_test::{Expect, expect};
    use jiff::{Timestamp, ToSpan};

    fn windows(text: &str) -> Maintenance {
        let (maintenance, broken) = Maintenance::read(Some(text));
        assert_eq!(broken, None, "{text}");
        maintenance
    }

    /// The changes between open and closed, found by asking every five minutes, and every answer about the next opening checked.
    fn states_over(text: &str, from: &str, days: i32) -> String {
        let (maintenance, mut moment) = (windows(text), from.parse::<Timestamp>().unwrap());
        let end = moment.checked_add((24 * i64::from(days)).hours()).unwrap();
        let (mut was_open, mut announced, mut lines) = (None, None, Vec::new());
        while moment < end {
            let state = maintenance.at(moment);
            let is_open = state == Window::Open;
            if was_open.is_some_and(|was_open| was_open != is_open) {
                lines.push(format!("{} {}", if is_open { "opens " } else { "closes" }, maintenance.shown(moment)));
                assert!(!is_open || announced == Some(moment), "announced {announced:?}, opened {moment}");
            }
            if let Window::Closed { opens } = state {
                announced = opens;
            }
            was_open = Some(is_open);
            moment = moment.checked_add(5.minutes()).unwrap();
        }
        lines.join("\n")
    }

    fn check(text: &str, from: &str, days: i32, expected: &Expect) {
        expected.assert_eq(&states_over(text, from, days));
    }

    #[test]
    fn a_window_opens_on_its_days_in_its_zone_and_may_run_over_midnight() {
        check(
            "Sat,Sun 01:00-05:00 Europe/Berlin; Wed 02:00-04:00 UTC",
            "2026-11-16T00:00:00Z",
            7,
            &expect![[r#"
                opens  Wed 2026-11-18 03:00 Europe/Berlin
                closes Wed 2026-11-18 05:00 Europe/Berlin
                opens  Sat 2026-11-21 01:00 Europe/Berlin
                closes Sat 2026-11-21 05:00 Europe/Berlin
                opens  Sun 2026-11-22 01:00 Europe/Berlin
                closes Sun 2026-11-22 05:00 Europe/Berlin"#]],
        );
        check(
            "Sat 23:00-02:00 America/New_York",
            "2026-11-21T00:00:00Z",
            3,
            &expect![[r#"
                opens  Sat 2026-11-21 23:00 America/New_York
                closes Sun 2026-11-22 02:00 America/New_York"#]],
        );
        check(
            "fri-MON 22:00-24:00 UTC; Saturday 00:00-01:00 UTC",
            "2026-11-19T00:00:00Z",
            6,
            &expect![[r#"
                opens  Fri 2026-11-20 22:00 UTC
                closes Sat 2026-11-21 01:00 UTC
                opens  Sat 2026-11-21 22:00 UTC
                closes Sun 2026-11-22 00:00 UTC
                opens  Sun 2026-11-22 22:00 UTC
                closes Mon 2026-11-23 00:00 UTC
                opens  Mon 2026-11-23 22:00 UTC
                closes Tue 2026-11-24 00:00 UTC"#]],
        );
        check("daily 00:00-24:00 Asia/Kathmandu", "2026-11-19T00:00:00Z", 3, &expect![""]);
    }

    #[test]
    fn where_clocks_are_set_forward_what_they_skip_is_not_open() {
        let (eve, zone) = ("2027-03-27T12:00:00Z", "Europe/Berlin");
        for (times, expected) in [
            ("01:00-05:00", "opens  Sun 2027-03-28 01:00 Europe/Berlin\ncloses Sun 2027-03-28 05:00 Europe/Berlin"),
            ("02:30-03:30", "opens  Sun 2027-03-28 03:00 Europe/Berlin\ncloses Sun 2027-03-28 03:30 Europe/Berlin"),
            ("01:30-02:30", "opens  Sun 2027-03-28 01:30 Europe/Berlin\ncloses Sun 2027-03-28 03:00 Europe/Berlin"),
            ("02:00-03:00", ""),
            ("02:15-02:45", ""),
        ] {
            assert_eq!(states_over(&format!("Sun {times} {zone}"), eve, 1), expected, "{times}");
        }
        let skipped = windows("Sun 02:00-03:00 Europe/Berlin").at(eve.parse().unwrap());
        let week_later: Timestamp = "2027-04-04T00:00:00Z".parse().unwrap();
        assert_eq!(skipped, Window::Closed { opens: Some(week_later) }, "the next one is a week later");
    }

    #[test]
    fn where_clocks_are_set_back_a_window_begins_and_ends_when_they_first_show_its_times() {
        let (eve, zone) = ("2026-10-24T12:00:00Z", "Europe/Berlin");
        for (times, expected) in [
            ("01:00-05:00", ("2026-10-24T23:00:00Z", "2026-10-25T04:00:00Z")),
            ("01:00-02:30", ("2026-10-24T23:00:00Z", "2026-10-25T00:30:00Z")),
            ("02:15-02:45", ("2026-10-25T00:15:00Z", "2026-10-25T00:45:00Z")),
            ("02:30-03:30", ("2026-10-25T00:30:00Z", "2026-10-25T02:30:00Z")),
        ] {
            let maintenance = windows(&format!("Sun {times} {zone}"));
            let Window::Closed { opens: Some(opens) } = maintenance.at(eve.parse().unwrap()) else {
                panic!("{times} is closed the day before")
            };
            let mut closes = opens;
            while maintenance.at(closes) == Window::Open {
                closes = closes.checked_add(1.minute()).unwrap();
            }
            assert_eq!((opens.to_string().as_str(), closes.to_string().as_str()), expected, "{times}");
        }
    }

    #[test]
    fn a_clock_that_is_set_changes_nothing_but_the_moment() {
        let maintenance = windows("Sat 01:00-05:00 UTC");
        let at = |text: &str| maintenance.at(text.parse().unwrap());
        assert_eq!(at("2026-11-21T02:00:00Z"), Window::Open);
        let opens = Some("2026-11-21T01:00:00Z".parse().unwrap());
        assert_eq!(at("2026-11-21T00:59:59Z"), Window::Closed { opens }, "set back");
        assert!(matches!(at("2026-11-21T05:00:00Z"), Window::Closed { .. }), "set forward");
        for edge in [Timestamp::MIN, Timestamp::MAX] {
            let _ = maintenance.at(edge);
        }
    }

    #[test]
    fn without_an_annotation_it_is_always_open_and_a_broken_one_is_never() {
        assert_eq!(Maintenance::read(None), (Maintenance::Always, None));
        let why = Some("it names no window".to_owned());
        assert_eq!(Maintenance::read(Some(" ")), (Maintenance::Unclear, why), "whoever empties it may mean anything");
        assert_eq!(Maintenance::Always.at(Timestamp::UNIX_EPOCH), Window::Open);
        let broken = [
            "always",
            "Sat 01:00-05:00",
            "Sat 01:00 Europe/Berlin",
            "Sat 1:00-05:00 UTC",
            "Sat 01:00-25:00 UTC",
            "Sat +1:00-05:00 UTC",
            "Sat 24:00-01:00 UTC",
            "Sat 01:00-01:00 UTC",
            "Sat 01:00-05:00 Europe/Berlni",
            "Sat 01:00-05:00 ../../etc/passwd",
            "Sa 01:00-05:00 UTC",
            ",Sat 01:00-05:00 UTC",
            "Sat, Sun 01:00-05:00 UTC",
            ";",
        ];
        let mut lines: Vec<String> = broken
            .iter()
            .map(|text| {
                let (maintenance, why) = Maintenance::read(Some(text));
                assert_eq!(maintenance, Maintenance::Unclear);
                assert_eq!(maintenance.at(Timestamp::UNIX_EPOCH), Window::Closed { opens: None }, "{text}");
                why.unwrap()
            })
            .collect();
        let long = format!("Sat 01:00-05:00 UTC;{}", " ".repeat(236));
        assert!(Maintenance::read(Some(&format!("{};", &long[..255]))).1.is_none(), "trailing blanks are trimmed");
        lines.push(Maintenance::read(Some(&format!("{long};"))).1.unwrap());
        expect![[r#"
            "always": days, times and time zone are three words, these are 1; write it like Sat,Sun 01:00-05:00 Europe/Berlin
            "Sat 01:00-05:00": the time zone is missing; write it like Sat,Sun 01:00-05:00 Europe/Berlin
            "Sat 01:00 Europe/Berlin": "01:00" has no end; write it like Sat,Sun 01:00-05:00 Europe/Berlin
            "Sat 1:00-05:00 UTC": "1:00" is not a time such as 01:00; write it like Sat,Sun 01:00-05:00 Europe/Berlin
            "Sat 01:00-25:00 UTC": "25:00" is not a time such as 01:00; write it like Sat,Sun 01:00-05:00 Europe/Berlin
            "Sat +1:00-05:00 UTC": "+1:00" is not a time such as 01:00; write it like Sat,Sun 01:00-05:00 Europe/Berlin
            "Sat 24:00-01:00 UTC": "24:00" is not a time such as 01:00; write it like Sat,Sun 01:00-05:00 Europe/Berlin
            "Sat 01:00-01:00 UTC": it ends when it starts; 00:00-24:00 is the whole day; write it like Sat,Sun 01:00-05:00 Europe/Berlin
            "Sat 01:00-05:00 Europe/Berlni": "Europe/Berlni" is not the name of a time zone; write it like Sat,Sun 01:00-05:00 Europe/Berlin
            "Sat 01:00-05:00 ../../etc/passwd": "../../etc/passwd" is not the name of a time zone; write it like Sat,Sun 01:00-05:00 Europe/Berlin
            "Sa 01:00-05:00 UTC": "Sa" is not a day such as Mon or Mon-Fri, or daily; write it like Sat,Sun 01:00-05:00 Europe/Berlin
            ",Sat 01:00-05:00 UTC": "" is not a day such as Mon or Mon-Fri, or daily; write it like Sat,Sun 01:00-05:00 Europe/Berlin
            "Sat, Sun 01:00-05:00 UTC": days, times and time zone are three words, these are 4; write it like Sat,Sun 01:00-05:00 Europe/Berlin
            it names no window
            it has 257 bytes, at most 256 are allowed"#]].assert_eq(&lines.join("\n"));
    }
}
