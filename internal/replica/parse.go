package replica

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// maxDocument is the most that an instance attribute can hold on GCE; a longer document is no Cluster.
const maxDocument = 256 << 10

// Source is one document and the name by which its faults are reported, such as its file or instance attribute.
type Source struct {
	Name string
	Data []byte
}

// Load reads the configuration from its sources, the later winning field by field: first the document baked into the
// image, then the instance attribute. Each must be a whole Cluster document in itself, decoded strictly. Lists replace
// lists; components are merged by name and env by key; a field that a later source sets to null takes its default
// again. The result is defaulted and validated; the error names every fault at once.
func Load(sources ...Source) (*Cluster, error) { return LoadAnd(nil, sources...) }

// LoadAnd is Load where further rules hold, too: they are asked next to Validate, and what they find is named with it.
// They must bear a document that Validate refuses.
func LoadAnd(further func(*Cluster) error, sources ...Source) (*Cluster, error) {
	if len(sources) == 0 {
		return nil, errors.New("read configuration: no source was given")
	}
	l := loading{sources: sources, at: map[*yaml.Node]position{}}
	var merged *yaml.Node
	for _, s := range sources {
		doc, c, err := parseDocument(s.Name, s.Data)
		if err != nil {
			l.faults = append(l.faults, asFaults(s.Name, err)...)
			l.unusable = true
			continue
		}
		l.faults = append(l.faults, c.faults...)
		l.refused = append(l.refused, c.refused...)
		doc = c.usable(doc)
		l.stands(doc, s.Name)
		merged = merge(merged, doc)
	}
	if l.unusable {
		return nil, l.faults
	}
	c, err := decode(merged)
	if err != nil {
		return nil, err
	}
	c.SetDefaults()
	l.judged(c.Validate(), merged)
	if further != nil {
		l.judged(further(c), merged)
	}
	if len(l.faults) > 0 {
		l.sort()
		return nil, l.faults
	}
	return c, nil
}

// parseDocument returns the root mapping of a document (YAML, or JSON, which is YAML), and what the checker found in
// it. It is strict: an unknown or doubled field, a value of the wrong type, an explicit zero and an anchor are faults
// that name source, line and field. What is no Cluster document as a whole, such as a second document or another kind,
// is an error.
func parseDocument(source string, data []byte) (*yaml.Node, *checker, error) {
	if len(data) > maxDocument {
		return nil, nil, fmt.Errorf("found a document of %d bytes; allowed: at most %d", len(data), maxDocument)
	}
	if fault := checkBytes(data); fault != nil {
		fault.Source = source
		return nil, nil, Faults{*fault}
	}
	root, err := singleDocument(source, data)
	if err != nil {
		return nil, nil, err
	}
	if faults := checkHead(source, root); len(faults) > 0 {
		return nil, nil, faults
	}
	c := &checker{source: source}
	c.check("", root, clusterType)
	return root, c, nil
}

func singleDocument(source string, data []byte) (*yaml.Node, error) {
	var doc, second yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("found an empty document; allowed: a %s document of %s", Kind, APIVersion)
	}
	if err != nil {
		return nil, Faults{syntaxFault(source, data, err)}
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil, fmt.Errorf("found an empty document; allowed: a %s document of %s", Kind, APIVersion)
	}
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("found %s; allowed: a %s document of %s", describe(root), Kind, APIVersion)
	}
	switch err := dec.Decode(&second); {
	case err == nil:
		return nil, Faults{{Source: source, Line: second.Line,
			whole: errors.New("found a second document; allowed: one")}}
	case !errors.Is(err, io.EOF):
		line, why := yamlLine(data, err)
		return nil, Faults{{Source: source, Line: line,
			whole: fmt.Errorf("found text behind the document that is not YAML (%s); allowed: nothing", why)}}
	}
	return root, nil
}

// checkHead is tested before all else: the fields of another kind or version would all be reported as unknown.
func checkHead(source string, root *yaml.Node) Faults {
	var faults Faults
	for _, want := range []struct{ field, value string }{{"apiVersion", APIVersion}, {"kind", Kind}} {
		fault := Fault{Source: source, Field: want.field, Allowed: want.value}
		value := valueOf(root, want.field)
		if value != nil && value.Kind == yaml.ScalarNode && value.Value == want.value {
			continue
		}
		if value != nil {
			fault.Line, fault.Found = value.Line, describe(value)
		}
		faults = append(faults, fault)
	}
	return faults
}

// decode turns a checked root mapping into the type. The checker has tried every leaf, so an error here is a gap in it.
func decode(root *yaml.Node) (*Cluster, error) {
	c := &Cluster{}
	if err := root.Decode(c); err != nil {
		return nil, fmt.Errorf("decode configuration: %w", err)
	}
	return c, nil
}

// asFaults gives an error of a whole document the shape that all faults have.
func asFaults(source string, err error) Faults {
	var faults Faults
	if errors.As(err, &faults) {
		return faults
	}
	return Faults{{Source: source, whole: err}}
}

// merge lays a later document over an earlier one, mapping by mapping. Neither is changed.
func merge(base, over *yaml.Node) *yaml.Node {
	if base == nil || base.Kind != yaml.MappingNode || over.Kind != yaml.MappingNode {
		return over
	}
	out := *base
	out.Content = append([]*yaml.Node(nil), base.Content...)
	for i := 0; i+1 < len(over.Content); i += 2 {
		key, value := over.Content[i], over.Content[i+1]
		at := indexOf(&out, key.Value)
		if at < 0 {
			out.Content = append(out.Content, key, value)
			continue
		}
		// The key of the later one: it says where the field stands.
		out.Content[at], out.Content[at+1] = key, merge(out.Content[at+1], value)
	}
	return &out
}

// indexOf is the position of a key in a mapping's content, or -1.
func indexOf(mapping *yaml.Node, key string) int {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return i
		}
	}
	return -1
}

func valueOf(mapping *yaml.Node, key string) *yaml.Node {
	if at := indexOf(mapping, key); at >= 0 {
		return mapping.Content[at+1]
	}
	return nil
}
