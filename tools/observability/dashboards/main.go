// Command dashboards checks rendered dashboards and alerts, and prints their queries as recording rules, whose syntax promtool can check.
//
//	dashboards METRICS RENDERED...
//
// METRICS lists the metrics that somebody exports; another one may not be queried. In a dashboard every panel is placed exactly once, no
// two overlap, and every variable that is used is defined and the other way round.
package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

type object struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Groups []struct {
			Rules []struct {
				Expr string `json:"expr"`
			} `json:"rules"`
		} `json:"groups"`
		Config struct {
			Variables []struct {
				Spec struct {
					Name   string `json:"name"`
					Plugin struct {
						Kind string `json:"kind"`
						Spec struct {
							LabelName string   `json:"labelName"`
							Matchers  []string `json:"matchers"`
							Values    []string `json:"values"`
						} `json:"spec"`
					} `json:"plugin"`
				} `json:"spec"`
			} `json:"variables"`
			Panels map[string]struct {
				Spec struct {
					Plugin struct {
						Kind string `json:"kind"`
					} `json:"plugin"`
					Queries []struct {
						Spec struct {
							Plugin struct {
								Kind string `json:"kind"`
								Spec struct {
									Query      string `json:"query"`
									Datasource struct {
										Kind string `json:"kind"`
										Name string `json:"name"`
									} `json:"datasource"`
								} `json:"spec"`
							} `json:"plugin"`
						} `json:"spec"`
					} `json:"queries"`
				} `json:"spec"`
			} `json:"panels"`
			Layouts []struct {
				Spec struct {
					Items []item `json:"items"`
				} `json:"spec"`
			} `json:"layouts"`
		} `json:"config"`
	} `json:"spec"`
}

type item struct {
	X       int `json:"x"`
	Y       int `json:"y"`
	Width   int `json:"width"`
	Height  int `json:"height"`
	Content struct {
		Ref string `json:"$ref"`
	} `json:"content"`
}

func (a item) overlaps(b item) bool {
	return a.X < b.X+b.Width && b.X < a.X+a.Width && a.Y < b.Y+b.Height && b.Y < a.Y+a.Height
}

var (
	variable = regexp.MustCompile(`\$(\w+)`)
	// What is removed before names are looked for: texts, selectors, ranges, and the labels of an aggregation or of a matching.
	noName = regexp.MustCompile(`"[^"]*"|\{[^}]*\}|\[[^]]*\]|\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)`)
	name   = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*\s*\(?`)
	words  = []string{"or", "and", "unless", "bool"}
	known  = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (\\w+) \\|")
)

type checker struct {
	metrics  map[string]bool
	queried  map[string]bool
	failures []string
	rules    []string
}

func (c *checker) fail(format string, values ...any) {
	c.failures = append(c.failures, fmt.Sprintf(format, values...))
}

// query checks an expression in which variables are replaced already.
func (c *checker) query(where, text string) {
	c.rules = append(c.rules, text)
	for _, found := range name.FindAllString(noName.ReplaceAllString(text, " "), -1) {
		if strings.HasSuffix(found, "(") || slices.Contains(words, strings.TrimSpace(found)) {
			continue
		}
		metric := strings.TrimSpace(found)
		if !c.metrics[metric] {
			c.fail("%s: nobody exports %s", where, metric)
		}
		c.queried[metric] = true
	}
}

func (c *checker) dashboard(board object) {
	where := board.Metadata.Name
	config := board.Spec.Config
	defined := map[string]string{}
	used := map[string]bool{}
	replace := func(text string) string {
		return variable.ReplaceAllStringFunc(text, func(found string) string {
			value, ok := defined[found[1:]]
			if !ok {
				c.fail("%s: the variable %s is not defined: %s", where, found, text)
			}
			used[found[1:]] = true
			return value
		})
	}
	for _, v := range config.Variables {
		switch plugin := v.Spec.Plugin; plugin.Kind {
		case "StaticListVariable":
			defined[v.Spec.Name] = plugin.Spec.Values[0]
		case "PrometheusLabelValuesVariable":
			for _, matcher := range plugin.Spec.Matchers {
				c.query(where, replace(matcher))
			}
			defined[v.Spec.Name] = ".*"
		default:
			c.fail("%s: unknown kind of variable %q", where, plugin.Kind)
		}
	}
	for id, panel := range config.Panels {
		if kind := panel.Spec.Plugin.Kind; !slices.Contains([]string{"TimeSeriesChart", "StatChart", "Table"}, kind) {
			c.fail("%s: %s: unknown kind of panel %q", where, id, kind)
		}
		if len(panel.Spec.Queries) == 0 {
			c.fail("%s: %s has no query", where, id)
		}
		for _, query := range panel.Spec.Queries {
			plugin := query.Spec.Plugin
			if plugin.Kind != "PrometheusTimeSeriesQuery" || plugin.Spec.Datasource.Kind != "PrometheusDatasource" || plugin.Spec.Datasource.Name == "" {
				c.fail("%s: %s: not a query of a named Prometheus datasource", where, id)
			}
			c.query(where+": "+id, replace(plugin.Spec.Query))
		}
	}
	for name := range defined {
		if !used[name] {
			c.fail("%s: the variable %s is not used", where, name)
		}
	}
	placed := map[string]int{}
	for _, layout := range config.Layouts {
		for i, a := range layout.Spec.Items {
			placed[strings.TrimPrefix(a.Content.Ref, "#/spec/panels/")]++
			if a.X < 0 || a.Width < 1 || a.Height < 1 || a.X+a.Width > 24 {
				c.fail("%s: %s is outside of the grid", where, a.Content.Ref)
			}
			for _, b := range layout.Spec.Items[:i] {
				if a.overlaps(b) {
					c.fail("%s: %s and %s overlap", where, a.Content.Ref, b.Content.Ref)
				}
			}
		}
	}
	for id := range config.Panels {
		if placed[id] != 1 {
			c.fail("%s: %s is placed %d times", where, id, placed[id])
		}
	}
	if len(placed) != len(config.Panels) {
		c.fail("%s: a layout names a panel that does not exist", where)
	}
}

func run(metricsFile string, files []string) (*checker, error) {
	text, err := os.ReadFile(metricsFile)
	if err != nil {
		return nil, err
	}
	c := &checker{metrics: map[string]bool{}, queried: map[string]bool{}}
	for _, match := range known.FindAllStringSubmatch(string(text), -1) {
		if match[2] == "histogram" {
			for _, suffix := range []string{"_bucket", "_count", "_sum"} {
				c.metrics[match[1]+suffix] = true
			}
		} else {
			c.metrics[match[1]] = true
		}
	}
	boards, rules := 0, 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, document := range bytes.Split(text, []byte("\n---")) {
			var found object
			if err := yaml.Unmarshal(document, &found); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			switch found.Kind {
			case "PersesDashboard":
				boards++
				c.dashboard(found)
			case "PrometheusRule":
				for _, group := range found.Spec.Groups {
					for _, rule := range group.Rules {
						rules++
						c.query(found.Metadata.Name, rule.Expr)
					}
				}
			}
		}
	}
	if boards == 0 || rules == 0 {
		return nil, fmt.Errorf("found %d dashboards and %d rules", boards, rules)
	}
	for metric := range c.metrics {
		listed := strings.HasSuffix(metric, "_bucket") || strings.HasSuffix(metric, "_count") || strings.HasSuffix(metric, "_sum")
		if !listed && !c.queried[metric] {
			c.fail("%s is listed, but not queried", metric)
		}
	}
	fmt.Fprintf(os.Stderr, "%d dashboards, %d rules, %d queries, %d metrics\n", boards, rules, len(c.rules), len(c.queried))
	return c, nil
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: dashboards METRICS RENDERED...")
		os.Exit(2)
	}
	c, err := run(os.Args[1], os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	for _, failure := range c.failures {
		fmt.Fprintln(os.Stderr, "FAILED:", failure)
	}
	if len(c.failures) > 0 {
		os.Exit(1)
	}
	type recording struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	type group struct {
		Name  string      `json:"name"`
		Rules []recording `json:"rules"`
	}
	queries := group{Name: "queries"}
	for i, query := range c.rules {
		queries.Rules = append(queries.Rules, recording{fmt.Sprintf("query:%d", i), query})
	}
	text, err := yaml.Marshal(map[string][]group{"groups": {queries}})
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	os.Stdout.Write(text)
}
