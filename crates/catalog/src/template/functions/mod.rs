//! The functions of templates: Go's, those of sprig, and our own.

mod argument;
mod case;
mod convert;
mod dict;
mod encode;
mod go;
mod json;
mod list;
mod lookup;
mod number;
mod stop;
mod text;

pub use convert::{parse_float, parse_int};
pub use lookup::{allowed, query};

use super::run::{RenderContext, Stop};
use super::value::Value;

/// One template function.
#[derive(Debug)]
pub struct Function {
    /// The name in a template.
    pub name: &'static str,
    /// The least number of arguments.
    pub least: usize,
    /// The greatest number of arguments; `None` is unlimited.
    pub most: Option<usize>,
    /// The implementation.
    pub call: fn(&RenderContext<'_>, &[Value]) -> Result<Value, Stop>,
}

impl Function {
    /// The accepted number of arguments, for messages.
    pub fn takes(&self) -> String {
        match self.most {
            Some(most) => format!("{most}"),
            None => format!("{} or more", self.least),
        }
    }
}

const fn of(
    name: &'static str,
    least: usize,
    most: Option<usize>,
    call: fn(&RenderContext<'_>, &[Value]) -> Result<Value, Stop>,
) -> Function {
    Function { name, least, most, call }
}

/// All functions, sorted by name.
pub static ALL: &[Function] = &[
    of("add", 0, None, number::add),
    of("add1", 1, Some(1), number::add1),
    of("and", 1, None, go::and_or),
    of("append", 2, Some(2), list::append),
    of("b32dec", 1, Some(1), encode::b32dec),
    of("b32enc", 1, Some(1), encode::b32enc),
    of("b64dec", 1, Some(1), encode::b64dec),
    of("b64enc", 1, Some(1), encode::b64enc),
    of("camelcase", 1, Some(1), case::camel),
    of("cat", 0, None, text::cat),
    of("ceil", 1, Some(1), number::ceil),
    of("chunk", 2, Some(2), list::chunk),
    of("coalesce", 0, None, convert::coalesce),
    of("compact", 1, Some(1), list::compact),
    of("concat", 0, None, list::concat),
    of("contains", 2, Some(2), text::contains),
    of("crdEnum", 2, Some(2), lookup::crd_enum),
    of("crdHasEnum", 3, Some(3), lookup::crd_has_enum),
    of("crdHasField", 2, Some(2), lookup::crd_has_field),
    of("default", 1, None, convert::default),
    of("dict", 0, None, dict::dict),
    of("dig", 3, None, dict::dig),
    of("div", 2, Some(2), number::div),
    of("empty", 1, Some(1), convert::empty),
    of("eq", 2, None, go::eq),
    of("fail", 1, Some(1), stop::fail),
    of("first", 1, Some(1), list::first),
    of("floor", 1, Some(1), number::floor),
    of("foreignKubeletConfig", 2, Some(2), lookup::foreign_kubelet_config),
    of("fromJson", 1, Some(1), json::from_json),
    of("fromYaml", 1, Some(1), json::from_yaml),
    of("ge", 2, Some(2), go::ge),
    of("getConfigMapData", 3, Some(3), lookup::get_config_map_data),
    of("gt", 2, Some(2), go::gt),
    of("gzip", 1, Some(1), encode::gzip),
    of("has", 2, Some(2), list::has),
    of("hasAnnotation", 3, Some(3), dict::has_annotation),
    of("hasKey", 2, Some(2), dict::has_key),
    of("hasPrefix", 2, Some(2), text::has_prefix),
    of("hasSuffix", 2, Some(2), text::has_suffix),
    of("html", 0, None, go::html),
    of("indent", 2, Some(2), text::indent),
    of("index", 1, None, go::index),
    of("initial", 1, Some(1), list::initial),
    of("join", 2, Some(2), text::join),
    of("js", 0, None, go::js),
    of("kebabcase", 1, Some(1), case::kebab),
    of("keys", 0, None, dict::keys),
    of("last", 1, Some(1), list::last),
    of("le", 2, Some(2), go::le),
    of("len", 1, Some(1), go::len),
    of("list", 0, None, list::list),
    of("lookup", 4, Some(4), lookup::lookup),
    of("lower", 1, Some(1), case::lower),
    of("lt", 2, Some(2), go::lt),
    of("max", 1, None, number::max),
    of("merge", 1, None, dict::merge),
    of("mergeOverwrite", 1, None, dict::merge_overwrite),
    of("min", 1, None, number::min),
    of("mod", 2, Some(2), number::modulo),
    of("mul", 1, None, number::mul),
    of("ne", 2, Some(2), go::ne),
    of("nindent", 2, Some(2), text::nindent),
    of("nospace", 1, Some(1), text::nospace),
    of("not", 1, Some(1), go::not),
    of("notApplicable", 1, Some(1), stop::not_applicable),
    of("objectExists", 3, Some(3), lookup::object_exists),
    of("omit", 1, None, dict::omit),
    of("or", 1, None, go::and_or),
    of("pick", 1, None, dict::pick),
    of("pluck", 1, None, dict::pluck),
    of("plural", 3, Some(3), text::plural),
    of("poolRuns", 2, Some(2), lookup::pool_runs),
    of("prepend", 2, Some(2), list::prepend),
    of("print", 0, None, go::print),
    of("printf", 1, None, go::printf),
    of("println", 0, None, go::println),
    of("prometheusRuleHasRecordingRule", 3, Some(3), lookup::has_recording_rule),
    of("quote", 0, None, text::quote),
    of("readAsset", 1, Some(1), lookup::read_asset),
    of("repeat", 2, Some(2), text::repeat),
    of("replace", 3, Some(3), text::replace),
    of("rest", 1, Some(1), list::rest),
    of("reverse", 1, Some(1), list::reverse),
    of("round", 2, None, number::round),
    of("set", 3, Some(3), dict::set),
    of("slice", 1, None, list::slice),
    of("snakecase", 1, Some(1), case::snake),
    of("splitList", 2, Some(2), text::split_list),
    of("squote", 0, None, text::squote),
    of("storageProfileRWXClass", 0, Some(0), lookup::storage_profile_rwx_class),
    of("storageProfileRWXClasses", 0, Some(0), lookup::storage_profile_rwx_classes),
    of("sub", 2, Some(2), number::sub),
    of("substr", 3, Some(3), text::substr),
    of("ternary", 3, Some(3), convert::ternary),
    of("title", 1, Some(1), case::title),
    of("toBool", 1, Some(1), convert::to_bool),
    of("toFloat64", 1, Some(1), convert::to_float64),
    of("toInt", 1, Some(1), convert::to_int),
    of("toInt64", 1, Some(1), convert::to_int),
    of("toJson", 1, Some(1), json::to_json),
    of("toPrettyJson", 1, Some(1), json::to_pretty_json),
    of("toRawJson", 1, Some(1), json::to_raw_json),
    of("toString", 1, Some(1), convert::to_string),
    of("toStrings", 1, Some(1), text::to_strings),
    of("toYaml", 1, Some(1), json::to_yaml),
    of("trim", 1, Some(1), text::trim),
    of("trimAll", 2, Some(2), text::trim_all),
    of("trimPrefix", 2, Some(2), text::trim_prefix),
    of("trimSuffix", 2, Some(2), text::trim_suffix),
    of("uniq", 1, Some(1), list::uniq),
    of("unset", 2, Some(2), dict::unset),
    of("untitle", 1, Some(1), case::untitle),
    of("upper", 1, Some(1), case::upper),
    of("urlquery", 0, None, go::urlquery),
    of("values", 1, Some(1), dict::values),
    of("without", 1, None, list::without),
    of("wrap", 2, Some(2), text::wrap),
    of("wrapWith", 3, Some(3), text::wrap_with),
];

/// Finds a function by name.
pub fn find(name: &str) -> Option<&'static Function> {
    ALL.binary_search_by(|function| function.name.cmp(name)).ok().map(|index| &ALL[index])
}

/// The functions that make queries.
pub fn querying() -> impl Iterator<Item = &'static str> {
    ALL.iter()
        .filter(|function| query(function.name, &vec![""; function.least]).is_some())
        .map(|function| function.name)
}

#[cfg(test)]
mod tests {
    use super::{ALL, querying};

    #[test]
    fn the_functions_that_make_queries_are_found() {
        let names: Vec<&str> = querying().collect();
        let expected = [
            "crdEnum",
            "crdHasEnum",
            "crdHasField",
            "foreignKubeletConfig",
            "getConfigMapData",
            "lookup",
            "objectExists",
            "prometheusRuleHasRecordingRule",
            "storageProfileRWXClass",
            "storageProfileRWXClasses",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn functions_are_sorted_by_name() {
        assert!(ALL.is_sorted_by(|before, after| before.name < after.name));
    }
}
