package replica

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/quorate/quorate/internal/pattern"
)

var (
	clusterType  = reflect.TypeFor[Cluster]()
	durationType = reflect.TypeFor[Duration]()
)

// former are the fields that quorate no longer has, with what to do instead.
var former = map[string]string{
	"restore": "nothing: leave it out. A snapshot or a warm copy is restored by a person alone, with 'quorate " +
		"restore', which the wait restore-offered names",
}

// checker walks a document beside the type that it must fit and notes every fault with its line. The yaml module's own
// strict mode stops at less (explicit zeros, anchors), and names Go's types instead of the document's fields.
type checker struct {
	source string
	faults Faults
	// refused are the fields with a fault, and those that were meant by them.
	refused []string
	// bad are the names and values with a fault.
	bad map[*yaml.Node]bool
}

// check compares one value with the type of its field.
func (c *checker) check(path string, n *yaml.Node, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		c.fault(path, n, "an anchor or alias", "the value itself")
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		// The field is not given.
	case t.Kind() == reflect.Struct:
		c.mapping(path, n, t, func(key *yaml.Node) reflect.Type { return fieldOf(t, key.Value) })
	case t.Kind() == reflect.Map:
		c.mapping(path, n, t, func(*yaml.Node) reflect.Type { return t.Elem() })
	case t.Kind() == reflect.Slice:
		c.list(path, n, t.Elem())
	default:
		c.leaf(path, n, t)
	}
}

// mapping checks every key and value of a mapping for type of. typeOf returns the type of a key's value, or nil.
func (c *checker) mapping(path string, n *yaml.Node, of reflect.Type, typeOf func(key *yaml.Node) reflect.Type) {
	if n.Kind != yaml.MappingNode {
		c.fault(path, n, describeAt(path, n), "a mapping of names to values")
		return
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.Tag == "!!merge" || key.Anchor != "" {
			c.fault(path, key, describeAt(path, key)+" as a name", "plain names")
			continue
		}
		field := join(path, key.Value)
		if first, double := lines[key.Value]; double {
			c.fault(field, key, "the field a second time", fmt.Sprintf("once; it stands in line %d already", first))
			continue
		}
		lines[key.Value] = key.Line
		t := typeOf(key)
		if why, gone := former[field]; gone {
			c.fault(field, key, "a field of an earlier version", why)
			continue
		}
		if t == nil {
			meant := c.meant(path, key.Value, of)
			c.fault(field, key, "an unknown field"+didYouMean(meant), strings.Join(fieldNames(of), ", "))
			c.refused = append(c.refused, meant...)
			continue
		}
		c.check(field, value, t)
	}
}

func (c *checker) list(path string, n *yaml.Node, element reflect.Type) {
	if n.Kind != yaml.SequenceNode {
		c.fault(path, n, describeAt(path, n), "a list")
		return
	}
	for i, value := range n.Content {
		c.check(fmt.Sprintf("%s[%d]", path, i), value, element)
	}
}

// leaf tries the value on its type. An explicit zero is refused, because it could not be told from a field that is not
// given and would silently take the default.
func (c *checker) leaf(path string, n *yaml.Node, t reflect.Type) {
	allowed := allowedFor(t)
	found := describeAt(path, n)
	if inQuotes(n) && t != durationType && t.Kind() != reflect.String {
		found += " in quotes"
	}
	value := reflect.New(t)
	if n.Kind != yaml.ScalarNode || !plainly(n, t) || n.Decode(value.Interface()) != nil {
		c.fault(path, n, found, allowed)
		return
	}
	if t.Kind() != reflect.String && t.Kind() != reflect.Bool && value.Elem().IsZero() {
		c.fault(path, n, found, zeroRule(t))
	}
}

// wholeNumber is how a number is written: the yaml module reads 2.9 as 2, 0443 as 291 and 4_43 as 443.
var wholeNumber = pattern.Of(`^-?(0|[1-9][0-9]*)$`)

// plainly reports that a number or a truth is written in the one way that has one reading: the yaml module also
// takes off for false, which a schema and an editor read as text.
func plainly(n *yaml.Node, t reflect.Type) bool {
	switch {
	case t == durationType, t.Kind() == reflect.String:
		return true
	case t.Kind() == reflect.Bool:
		return n.Value == "true" || n.Value == "false"
	default:
		return wholeNumber().MatchString(n.Value)
	}
}

// inQuotes reports whether a value is written in quotes, which make it text.
func inQuotes(n *yaml.Node) bool { return n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 }

func zeroRule(t reflect.Type) string {
	what := "a whole number"
	if t == durationType {
		what = "a duration"
	}
	return what + " above 0; leave the field out to take the default"
}

func (c *checker) fault(path string, n *yaml.Node, found, allowed string) {
	c.faults = append(c.faults, Fault{Source: c.source, Line: n.Line, Field: path, Found: found, Allowed: allowed})
	c.refused = append(c.refused, path)
	if c.bad == nil {
		c.bad = map[*yaml.Node]bool{}
	}
	c.bad[n] = true
}

// meant are the fields that an unknown one may stand for. Below seal none is named: the unknown one may be the key.
func (c *checker) meant(path, name string, of reflect.Type) []string {
	if path == "seal" {
		return nil
	}
	return meantField(path, name, of)
}

// usable is the document without what has a fault, so that the rest can be judged. A list with a bad item is left out
// whole, or the items behind it would be called by other numbers.
func (c *checker) usable(n *yaml.Node) *yaml.Node {
	out := *n
	out.Content = nil
	step := 1
	if n.Kind == yaml.MappingNode {
		step = 2
	}
	for i := 0; i+step <= len(n.Content); i += step {
		key, value := n.Content[i], n.Content[i+step-1]
		if c.lacks(key) || c.lacks(value) {
			continue
		}
		if step == 2 {
			out.Content = append(out.Content, key)
		}
		out.Content = append(out.Content, c.usable(value))
	}
	return &out
}

// lacks reports whether a value cannot be used: it has a fault, or it is a list with such an item.
func (c *checker) lacks(n *yaml.Node) bool {
	return c.bad[n] || n.Kind == yaml.SequenceNode && slices.ContainsFunc(n.Content, c.lacks)
}

// fieldOf is the type of a struct's field by its name in documents; nil: it has no such field.
func fieldOf(t reflect.Type, name string) reflect.Type {
	for f := range t.Fields() {
		if fieldName(f) == name {
			return f.Type
		}
	}
	return nil
}

// fieldNames are the names of a struct's fields in documents, sorted.
func fieldNames(t reflect.Type) []string {
	var names []string
	for f := range t.Fields() {
		names = append(names, fieldName(f))
	}
	slices.Sort(names)
	return names
}

// fieldName is what a field is called in documents.
func fieldName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return name
}

func allowedFor(t reflect.Type) string {
	switch {
	case t == durationType:
		return "a duration such as 100ms, 1s or 15m"
	case t.Kind() == reflect.String:
		return "text"
	case t.Kind() == reflect.Bool:
		return "true or false"
	default:
		return "a whole number in decimal digits"
	}
}

// describeAt is describe, but for what stands below seal: that may be the key, in whatever wrong shape.
func describeAt(path string, n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode && strings.HasPrefix(path, "seal") {
		return notShown
	}
	return describe(n)
}

// describe says what a node is, for people.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	default:
		return quote(n.Value)
	}
}

// plainName is what a field or component can be called; anything else is quoted, to keep a fault on its line.
var plainName = pattern.Of(`^[-_.A-Za-z0-9]{1,80}$`)

func join(path, name string) string {
	switch {
	case path == "seal" && name != "key":
		name = "(a name that is not shown)"
	case !plainName().MatchString(name):
		name = quote(name)
	}
	if path == "" {
		return name
	}
	return path + "." + name
}
