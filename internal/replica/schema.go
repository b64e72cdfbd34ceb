package replica

import (
	"embed"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"
)

// typeSources are the type's own files: their comments are the schema's descriptions, so the two cannot drift apart.
//
//go:embed cluster.go access.go
var typeSources embed.FS

// durationPattern is what time.ParseDuration takes, but for signs and a bare 0.
const durationPattern = `^([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))*$`

// Schema is the JSON Schema (2020-12) of a whole Cluster document, for editors and linters. It refuses unknown fields
// and wrong types; what depends on more than one field only Validate knows.
func Schema() ([]byte, error) {
	comments := map[commentKey]string{}
	for _, name := range []string{"cluster.go", "access.go"} {
		if err := readComments(name, comments); err != nil {
			return nil, fmt.Errorf("read the comments of the configuration's type: %w", err)
		}
	}
	r := jsonschema.Reflector{
		Anonymous:      true,
		ExpandedStruct: true,
		FieldNameTag:   "yaml",
		Mapper:         mapDuration,
		LookupComment: func(t reflect.Type, field string) string {
			return comments[commentKey{t.Name(), field}]
		},
	}
	out, err := json.MarshalIndent(r.ReflectFromType(clusterType), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the schema of the configuration: %w", err)
	}
	return append(out, '\n'), nil
}

func mapDuration(t reflect.Type) *jsonschema.Schema {
	if t != durationType {
		return nil
	}
	return &jsonschema.Schema{Type: "string", Pattern: durationPattern}
}

// commentKey names a type (field empty) or a field of it, by its Go name.
type commentKey struct{ typ, field string }

// readComments reads the comments of a source file's struct types and of their fields.
func readComments(name string, out map[commentKey]string) error {
	source, err := typeSources.ReadFile(name)
	if err != nil {
		return err
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments)
	if err != nil {
		return err
	}
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || len(gen.Specs) != 1 {
			continue
		}
		spec, ok := gen.Specs[0].(*ast.TypeSpec)
		if !ok {
			continue
		}
		out[commentKey{spec.Name.Name, ""}] = oneLine(gen.Doc)
		if st, ok := spec.Type.(*ast.StructType); ok {
			for _, field := range st.Fields.List {
				out[commentKey{spec.Name.Name, field.Names[0].Name}] = oneLine(field.Doc)
			}
		}
	}
	return nil
}

func oneLine(doc *ast.CommentGroup) string {
	return strings.Join(strings.Fields(doc.Text()), " ")
}
