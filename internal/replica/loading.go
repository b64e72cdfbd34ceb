package replica

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// loading gathers the faults of a document that may have several sources. A field that the checker refused is left out
// of what is judged, so the rest is judged all the same.
type loading struct {
	sources []Source
	faults  Faults
	// refused are the fields that have a fault already, and those that were meant by a misspelt one.
	refused []string
	// unusable: a source is no Cluster document at all, so nothing can be said of the whole.
	unusable bool
	// at is where the names and values of all sources stand.
	at map[*yaml.Node]position
}

// position is where something stands.
type position struct {
	source string
	line   int
}

// stands notes the source of all nodes.
func (l *loading) stands(n *yaml.Node, source string) {
	l.at[n] = position{source, n.Line}
	for _, below := range n.Content {
		l.stands(below, source)
	}
}

// judged takes in what was found in the merged document, each fault with its place. What only follows from a field that
// was refused is left out, and so is what two judges found alike.
func (l *loading) judged(err error, merged *yaml.Node) {
	if err == nil {
		return
	}
	places := map[string]position{}
	l.places("", merged, places)
	for _, fault := range asFaults("", err) {
		if l.follows(fault) || slices.ContainsFunc(l.faults, func(f Fault) bool {
			return f.Field == fault.Field && f.Allowed == fault.Allowed
		}) {
			continue
		}
		at := l.placeOf(fault.Field, places)
		fault.Source, fault.Line = at.source, at.line
		l.faults = append(l.faults, fault)
	}
}

// places lists the fields of a document by their paths. A field that has a name stands where its name does.
func (l *loading) places(path string, n *yaml.Node, into map[string]position) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			field := join(path, n.Content[i].Value)
			into[field] = l.at[n.Content[i]]
			l.places(field, n.Content[i+1], into)
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			field := fmt.Sprintf("%s[%d]", path, i)
			into[field] = l.at[item]
			l.places(field, item, into)
		}
	}
}

// placeOf is where a field stands, or what it is missing in. What is missing in the whole document has no line.
func (l *loading) placeOf(field string, places map[string]position) position {
	for field != "" {
		if at, ok := places[field]; ok {
			return at
		}
		field = field[:max(0, strings.LastIndexAny(field, ".["))]
	}
	names := make([]string, len(l.sources))
	for i, s := range l.sources {
		names[i] = s.Name
	}
	return position{source: strings.Join(names, " + ")}
}

// follows reports that a fault is there only because a field was left out.
func (l *loading) follows(fault Fault) bool {
	return slices.ContainsFunc(l.refused, func(refused string) bool {
		return within(fault.Field, refused) || fault.Found == "" && within(refused, fault.Field)
	})
}

// within reports whether a field is another one, or below it.
func within(field, above string) bool {
	rest, ok := strings.CutPrefix(field, above)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// sort puts the faults into the order of the documents; those without a line come last.
func (l *loading) sort() {
	order := map[string]int{}
	for i, s := range l.sources {
		order[s.Name] = i
	}
	rank := func(f Fault) int {
		if i, ok := order[f.Source]; ok && f.Line > 0 {
			return i
		}
		return len(l.sources)
	}
	slices.SortStableFunc(l.faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Field, b.Field))
	})
}
