// Command operations evaluates the rules of all OperationRuleSets on the objects of a file of cases.
//
//	operations RENDERED CASES
//
// RENDERED holds the rendered OperationRuleSets, CASES maps the name of a set to its cases. The program fails if an expression does not
// compile to a boolean, if it gives another answer than the case says, if it cannot be evaluated on an incomplete object, or if a rule
// has no case.
package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"slices"

	"github.com/google/cel-go/cel"
	"sigs.k8s.io/yaml"
)

type ruleSet struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Component string `json:"component"`
		Target    struct {
			Group    string `json:"group"`
			Version  string `json:"version"`
			Resource string `json:"resource"`
		} `json:"target"`
		Rules []struct {
			Operation  string `json:"operation"`
			Expression string `json:"expression"`
		} `json:"rules"`
	} `json:"spec"`
}

type testCase struct {
	Operation string         `json:"operation"`
	Also      []string       `json:"also"`
	Matches   map[string]any `json:"matches"`
	Differs   map[string]any `json:"differs"`
}

// incomplete are objects that a controller has not filled in yet. No expression may fail on them: an error in one rule ends the
// evaluation of the whole set.
var incomplete = []string{
	`{}`,
	`{"spec": {}}`,
	`{"status": {}}`,
	`{"spec": {}, "status": {}}`,
	`{"spec": {}, "status": {"conditions": []}}`,
	`{"spec": {}, "status": {"conditions": [{"type": "Other", "status": "Unknown"}]}}`,
	`{"spec": {}, "status": {"phase": "", "printableStatus": "", "history": []}}`,
}

type rule struct {
	operation string
	program   cel.Program
}

func (r rule) holds(object map[string]any) (bool, error) {
	result, _, err := r.program.Eval(map[string]any{"object": withIntegers(object)})
	if err != nil {
		return false, err
	}
	holds, ok := result.Value().(bool)
	if !ok {
		return false, fmt.Errorf("the result is no boolean but %v", result.Value())
	}
	return holds, nil
}

// withIntegers returns the value with whole numbers as integers, as a Kubernetes client decodes them.
func withIntegers(value any) any {
	switch value := value.(type) {
	case map[string]any:
		result := map[string]any{}
		for key, item := range value {
			result[key] = withIntegers(item)
		}
		return result
	case []any:
		result := make([]any, len(value))
		for i, item := range value {
			result[i] = withIntegers(item)
		}
		return result
	case float64:
		if value == math.Trunc(value) {
			return int64(value)
		}
	}
	return value
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: operations RENDERED CASES")
		os.Exit(2)
	}
	failures, err := run(os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	for _, failure := range failures {
		fmt.Fprintln(os.Stderr, "FAILED:", failure)
	}
	if len(failures) > 0 {
		os.Exit(1)
	}
}

func run(rendered, casesFile string) ([]string, error) {
	sets, err := readSets(rendered)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(casesFile)
	if err != nil {
		return nil, err
	}
	cases := map[string][]testCase{}
	if err := yaml.UnmarshalStrict(text, &cases); err != nil {
		return nil, fmt.Errorf("%s: %w", casesFile, err)
	}
	// The environment of the controller: the standard library and one variable, the object as it is.
	env, err := cel.NewEnv(cel.Variable("object", cel.DynType))
	if err != nil {
		return nil, err
	}

	var failures []string
	fail := func(format string, values ...any) { failures = append(failures, fmt.Sprintf(format, values...)) }
	evaluations := 0
	ruleCount := 0
	for _, set := range sets {
		name := set.Metadata.Name
		var rules []rule
		for _, r := range set.Spec.Rules {
			ruleCount++
			if slices.ContainsFunc(rules, func(other rule) bool { return other.operation == r.Operation }) {
				fail("%s: the operation %s has two rules", name, r.Operation)
			}
			ast, issues := env.Compile(r.Expression)
			if issues.Err() != nil {
				fail("%s: %s: %v", name, r.Operation, issues.Err())
				continue
			}
			if kind := ast.OutputType(); kind != cel.BoolType && kind != cel.DynType {
				fail("%s: %s: the expression is a %s", name, r.Operation, kind)
			}
			program, err := env.Program(ast)
			if err != nil {
				fail("%s: %s: %v", name, r.Operation, err)
				continue
			}
			rules = append(rules, rule{r.Operation, program})
			if !slices.ContainsFunc(cases[name], func(c testCase) bool { return c.Operation == r.Operation }) {
				fail("%s: %s has no case", name, r.Operation)
			}
		}
		// inFlight lists the operations of an object.
		inFlight := func(object map[string]any) []string {
			var operations []string
			for _, r := range rules {
				evaluations++
				holds, err := r.holds(object)
				if err != nil {
					fail("%s: %s cannot be evaluated on %v: %v", name, r.operation, object, err)
				}
				if holds {
					operations = append(operations, r.operation)
				}
			}
			return operations
		}
		for _, c := range cases[name] {
			want := append([]string{c.Operation}, c.Also...)
			got := inFlight(c.Matches)
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(want, got) {
				fail("%s: in flight are %v, not %v, on %v", name, got, want, c.Matches)
			}
			if slices.Contains(inFlight(c.Differs), c.Operation) {
				fail("%s: %s is in flight on %v", name, c.Operation, c.Differs)
			}
		}
		for _, text := range incomplete {
			object := map[string]any{}
			if err := yaml.Unmarshal([]byte(text), &object); err != nil {
				return nil, err
			}
			inFlight(object)
		}
	}
	for name := range cases {
		if !slices.ContainsFunc(sets, func(set ruleSet) bool { return set.Metadata.Name == name }) {
			fail("%s: there are cases, but no such set was rendered", name)
		}
	}
	if len(failures) == 0 {
		fmt.Printf("%d sets, %d rules, %d evaluations: all as expected\n", len(sets), ruleCount, evaluations)
	}
	return failures, nil
}

func readSets(path string) ([]ruleSet, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var sets []ruleSet
	for _, document := range bytes.Split(text, []byte("\n---")) {
		var set ruleSet
		if err := yaml.Unmarshal(document, &set); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if set.Kind == "OperationRuleSet" {
			sets = append(sets, set)
		}
	}
	if len(sets) == 0 {
		return nil, fmt.Errorf("%s holds no OperationRuleSet", path)
	}
	return sets, nil
}
