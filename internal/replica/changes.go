package replica

import (
	"fmt"
	"reflect"
	"strings"
)

// Change is a field in which two documents differ. What is secret is not shown.
type Change struct {
	// Field is the document's path to it. Before and After are empty where the one document has no such field.
	Field  string `json:"field"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// String shows it in a line.
func (c Change) String() string { return fmt.Sprintf("%s: %q, will be %q", c.Field, c.Before, c.After) }

// longestValue keeps a change on a line.
const longestValue = 100

// Changes are the fields in which two documents differ, defaults filled in, by name.
func Changes(before, after *Cluster) []Change {
	old, next := map[string]string{}, map[string]string{}
	flatten("", reflect.ValueOf(*before), old)
	flatten("", reflect.ValueOf(*after), next)
	all := map[string]bool{}
	for _, fields := range []map[string]string{old, next} {
		for field := range fields {
			all[field] = true
		}
	}
	changes := []Change{}
	for _, field := range sortedKeys(all) {
		a, inOld := old[field]
		b, inNew := next[field]
		if a != b || inOld != inNew {
			changes = append(changes, Change{field, shownValue(field, a), shownValue(field, b)})
		}
	}
	return changes
}

// shownValue cuts a long value, and hides what Show hides.
func shownValue(field, value string) string {
	switch {
	case value == "":
		return ""
	case field == "seal.key":
		return Seal{Key: value}.String()
	case strings.HasPrefix(field, "components.") && strings.Contains(field, ".env."):
		return redacted
	case len(value) > longestValue:
		return strings.ToValidUTF8(value[:longestValue], "") + "…"
	}
	return value
}

// flatten writes down each value of a document by its path. What is empty is not in it.
func flatten(at string, v reflect.Value, out map[string]string) {
	if v.IsZero() {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.Elem().Kind() == reflect.Struct {
			flatten(at, v.Elem(), out)
			return
		}
		out[at] = fmt.Sprint(v.Elem().Interface()) // a false that is given is not the same as nothing
	case reflect.Struct:
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
			flatten(strings.TrimPrefix(at+"."+name, "."), v.Field(i), out)
		}
	case reflect.Slice:
		for i := range v.Len() {
			flatten(fmt.Sprintf("%s[%d]", at, i), v.Index(i), out)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			flatten(at+"."+key.String(), v.MapIndex(key), out)
		}
	default:
		out[at] = fmt.Sprint(v.Interface())
	}
}
