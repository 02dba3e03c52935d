// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

// Renders a Helm chart with what Helm itself is built on: Go's text/template, the functions of
// sprig, sigs.k8s.io/yaml, and for values.schema.json the gojsonschema of Helm before 3.18. It is not
// Helm: it knows .Values, .Chart, .Release, .Template and .Files.Get, include, tpl, required, toYaml,
// fromYaml and toJson, no dependencies, hooks, lookup or .Capabilities.
//
//	renderer CHART [VALUES...]
//
// prints every template, each after a line "# Source: templates/NAME". The release is "lamplighter"
// unless RELEASE_NAME is set.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"github.com/xeipuuv/gojsonschema"
	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) < 2 {
		fail(errors.New("usage: renderer CHART [VALUES...]"))
	}
	chart := os.Args[1]
	values := load(filepath.Join(chart, "values.yaml"))
	for _, file := range os.Args[2:] {
		values = merged(values, load(file))
	}
	validate(values, filepath.Join(chart, "values.schema.json"))
	templates, names := parsed(filepath.Join(chart, "templates"))
	for _, name := range names {
		context := map[string]interface{}{
			"Values":   values,
			"Chart":    capitalized(load(filepath.Join(chart, "Chart.yaml"))),
			"Release":  release(),
			"Template": map[string]interface{}{"Name": name},
			"Files":    files(chart),
		}
		var text strings.Builder
		if err := templates.ExecuteTemplate(&text, name, context); err != nil {
			fail(err)
		}
		// As Helm does: what is not there is printed as nothing.
		fmt.Printf("# Source: %s\n%s\n", name, strings.ReplaceAll(text.String(), "<no value>", ""))
	}
}

// files is the chart's folder. Helm leaves out the templates and what .helmignore names, and so do the
// templates here: they ask for no such file.
type files string

// Get returns a file's text, which is empty if there is none, as in Helm.
func (folder files) Get(name string) string {
	text, err := os.ReadFile(filepath.Join(string(folder), name))
	if err != nil && !os.IsNotExist(err) {
		fail(err)
	}
	return string(text)
}

// validate ends the program with Helm's words if the values do not meet the chart's schema.
func validate(values map[string]interface{}, schema string) {
	text, err := os.ReadFile(schema)
	if os.IsNotExist(err) {
		return
	}
	if err != nil {
		fail(err)
	}
	result, err := gojsonschema.Validate(
		gojsonschema.NewBytesLoader(text), gojsonschema.NewGoLoader(values))
	if err != nil {
		fail(fmt.Errorf("%s: %w", schema, err))
	}
	if result.Valid() {
		return
	}
	var lines strings.Builder
	for _, complaint := range result.Errors() {
		fmt.Fprintf(&lines, "\n- %s", complaint)
	}
	fail(fmt.Errorf("values don't meet the specifications of the schema: %s", lines.String()))
}

func parsed(folder string) (*template.Template, []string) {
	root := template.New("chart").Option("missingkey=zero")
	root.Funcs(functions(root))
	entries, err := os.ReadDir(folder)
	if err != nil {
		fail(err)
	}
	var names []string
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			fail(err)
		}
		name := "templates/" + entry.Name()
		if _, err := root.New(name).Parse(string(text)); err != nil {
			fail(err)
		}
		// Helm makes no objects of files that begin with an underscore.
		if !strings.HasPrefix(entry.Name(), "_") {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return root, names
}

func functions(root *template.Template) template.FuncMap {
	functions := sprig.TxtFuncMap()
	// Helm leaves these out: a chart must not depend on whose machine renders it.
	delete(functions, "env")
	delete(functions, "expandenv")
	functions["toYaml"] = func(value interface{}) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	}
	functions["fromYaml"] = func(text string) (map[string]interface{}, error) {
		value := map[string]interface{}{}
		return value, yaml.Unmarshal([]byte(text), &value)
	}
	functions["required"] = func(complaint string, value interface{}) (interface{}, error) {
		if value == nil || value == "" {
			return nil, errors.New(complaint)
		}
		return value, nil
	}
	functions["include"] = func(name string, context interface{}) (string, error) {
		var text strings.Builder
		err := root.ExecuteTemplate(&text, name, context)
		return text.String(), err
	}
	functions["tpl"] = func(source string, context interface{}) (string, error) {
		copied, err := root.Clone()
		if err != nil {
			return "", err
		}
		inline, err := copied.New("tpl").Parse(source)
		if err != nil {
			return "", err
		}
		var text strings.Builder
		err = inline.Execute(&text, context)
		return text.String(), err
	}
	return functions
}

// merged returns the defaults with the other values over them: maps key by key, everything else
// whole. A value of null removes the default.
func merged(defaults, others map[string]interface{}) map[string]interface{} {
	result := map[string]interface{}{}
	for key, value := range defaults {
		result[key] = value
	}
	for key, value := range others {
		old, oldIsMap := result[key].(map[string]interface{})
		new, newIsMap := value.(map[string]interface{})
		switch {
		case value == nil:
			delete(result, key)
		case oldIsMap && newIsMap:
			result[key] = merged(old, new)
		default:
			result[key] = value
		}
	}
	return result
}

func release() map[string]interface{} {
	name := os.Getenv("RELEASE_NAME")
	if name == "" {
		name = "lamplighter"
	}
	return map[string]interface{}{"Name": name, "Namespace": "default", "Service": "Helm"}
}

// capitalized has the fields of Chart.yaml under the names that templates know them by.
func capitalized(chart map[string]interface{}) map[string]interface{} {
	result := map[string]interface{}{}
	for key, value := range chart {
		result[strings.ToUpper(key[:1])+key[1:]] = value
	}
	return result
}

func load(file string) map[string]interface{} {
	text, err := os.ReadFile(file)
	if err != nil {
		fail(err)
	}
	values := map[string]interface{}{}
	if err := yaml.UnmarshalStrict(text, &values); err != nil {
		fail(fmt.Errorf("%s: %w", file, err))
	}
	return values
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "renderer:", err)
	os.Exit(1)
}
