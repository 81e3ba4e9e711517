// Oracle says what Go makes of template cases, so that the Rust renderer can be held to it.
//
// It reads the cases from standard input (a map of function name to a list of cases; a case is a template, or a map of
// `template` and `data`) and writes one JSON answer per case: what was printed, or that it failed.
//
//	go run . <../../crates/catalog/tests-data/functions.yaml >../../crates/catalog/tests-data/functions.go.json
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"reflect"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"github.com/spf13/cast"
	"sigs.k8s.io/yaml"
)

// Answer is what Go makes of one case. Error says why there is no output; only that there is one is compared.
type Answer struct {
	Function string  `json:"function"`
	Template string  `json:"template"`
	Output   *string `json:"output,omitempty"`
	Error    string  `json:"error,omitempty"`
}

// sprigs are the functions that are sprig's own, by its names.
var sprigs = strings.Fields(`
	upper lower title untitle repeat substr nospace trim trimAll trimSuffix trimPrefix replace plural snakecase
	camelcase kebabcase contains hasPrefix hasSuffix quote squote cat indent nindent wrap wrapWith
	default empty coalesce ternary toString toStrings toJson toPrettyJson toRawJson fromJson
	list append prepend first rest last initial reverse uniq without compact slice concat chunk splitList join
	dict set unset hasKey pluck merge mergeOverwrite keys pick omit values
	add add1 sub div mod mul max min floor ceil round b64enc b64dec b32enc b32dec fail`)

// functions are sprig's and those that packs have beside them.
func functions() template.FuncMap {
	all := sprig.TxtFuncMap()
	chosen := template.FuncMap{
		"toInt":     cast.ToInt,
		"toInt64":   cast.ToInt64,
		"toFloat64": cast.ToFloat64,
		"toBool":    cast.ToBool,
		"dig":       dig,
		"has":       has,
		"hasAnnotation": func(object map[string]any, key string, value any) bool {
			found := dig("metadata", "annotations", key, nil, object)
			return found != nil && fmt.Sprint(found) == fmt.Sprint(value)
		},
		"toYaml": func(value any) string {
			text, err := yaml.Marshal(value)
			if err != nil {
				return ""
			}
			return strings.TrimSuffix(string(text), "\n")
		},
		"fromYaml": func(text string) map[string]any {
			value := map[string]any{}
			if yaml.Unmarshal([]byte(text), &value) != nil {
				return map[string]any{}
			}
			return value
		},
		"gzip": func(text string) (string, error) {
			var packed bytes.Buffer
			writer := gzip.NewWriter(&packed)
			if _, err := writer.Write([]byte(text)); err != nil {
				return "", err
			}
			return packed.String(), writer.Close()
		},
	}
	for _, name := range sprigs {
		function, found := all[name]
		if !found {
			panic("sprig has no " + name)
		}
		chosen[name] = function
	}
	return chosen
}

// dig goes from key to key; what is missing or no map gives the default.
func dig(arguments ...any) any {
	if len(arguments) < 3 {
		panic("dig needs keys, a default and a map")
	}
	value, fallback := arguments[len(arguments)-1], arguments[len(arguments)-2]
	for _, key := range arguments[:len(arguments)-2] {
		entries, isMap := value.(map[string]any)
		next, found := entries[key.(string)]
		if !isMap || !found {
			return fallback
		}
		value = next
	}
	return value
}

// has says whether a list has an item; what is no list has none.
func has(needle any, list any) bool {
	value := reflect.ValueOf(list)
	if value.Kind() != reflect.Slice {
		return false
	}
	for i := 0; i < value.Len(); i++ {
		if reflect.DeepEqual(needle, value.Index(i).Interface()) {
			return true
		}
	}
	return false
}

// plain makes whole numbers int64, as Kubernetes does for the objects it reads.
func plain(value any) any {
	switch value := value.(type) {
	case json.Number:
		if whole, err := value.Int64(); err == nil {
			return whole
		}
		number, _ := value.Float64()
		return number
	case []any:
		for i := range value {
			value[i] = plain(value[i])
		}
	case map[string]any:
		for key := range value {
			value[key] = plain(value[key])
		}
	}
	return value
}

func answer(function, text string, data any) Answer {
	result := Answer{Function: function, Template: text}
	parsed, err := template.New("case").Option("missingkey=error").Funcs(functions()).Parse(text)
	var out bytes.Buffer
	if err == nil {
		err = parsed.Execute(&out, data)
	}
	if err != nil {
		result.Error = err.Error()
		return result
	}
	printed := out.String()
	result.Output = &printed
	return result
}

func main() {
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	asJSON, err := yaml.YAMLToJSONStrict(input)
	if err != nil {
		panic(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(asJSON))
	decoder.UseNumber()
	cases := map[string][]any{}
	if err := decoder.Decode(&cases); err != nil {
		panic(err)
	}
	names := make([]string, 0, len(cases))
	for name := range cases {
		names = append(names, name)
	}
	sort.Strings(names)
	fmt.Println("[")
	isFirst := true
	for _, name := range names {
		for _, one := range cases[name] {
			text, isText := one.(string)
			var data any
			if !isText {
				entries := one.(map[string]any)
				text, data = entries["template"].(string), plain(entries["data"])
			}
			var line bytes.Buffer
			encoder := json.NewEncoder(&line)
			encoder.SetEscapeHTML(false)
			if err := encoder.Encode(answer(name, text, data)); err != nil {
				panic(err)
			}
			if !isFirst {
				fmt.Println(",")
			}
			isFirst = false
			fmt.Print(strings.TrimSuffix(line.String(), "\n"))
		}
	}
	fmt.Println("\n]")
}
