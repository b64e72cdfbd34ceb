package replica_test

import (
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"

	"github.com/quorate/quorate/internal/replica"
)

var update = flag.Bool("update", false, "write cluster.schema.json anew")

// TestSchemaIsMadeOfTheType makes the schema again. The comments of the type are its descriptions, so the two cannot
// drift apart.
func TestSchemaIsMadeOfTheType(t *testing.T) {
	made := makeSchema(t)
	if *update {
		if err := os.WriteFile("cluster.schema.json", []byte(made), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if made != replica.Schema() {
		t.Error("cluster.schema.json is not what the type says; run: " +
			"go test ./internal/replica -run TestSchemaIsMadeOfTheType -update")
	}
}

// durationPattern is what time.ParseDuration takes, but for signs and a bare 0.
const durationPattern = `^([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))*$`

func makeSchema(t *testing.T) string {
	t.Helper()
	comments := map[commentKey]string{}
	for _, name := range []string{"cluster.go", "access.go", "gce.go"} {
		readComments(t, name, comments)
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
	schema := r.ReflectFromType(reflect.TypeFor[replica.Cluster]())
	diskType, _ := schema.Definitions["GCEDisk"].Properties.Get("type")
	for _, name := range replica.DiskTypes { // too many for a tag
		diskType.Enum = append(diskType.Enum, name)
	}
	out, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out) + "\n"
}

func mapDuration(t reflect.Type) *jsonschema.Schema {
	if t != reflect.TypeFor[replica.Duration]() {
		return nil
	}
	return &jsonschema.Schema{Type: "string", Pattern: durationPattern}
}

// commentKey names a type (field empty) or a field of it, by its Go name.
type commentKey struct{ typ, field string }

// readComments reads the comments of a source file's struct types and of their fields.
func readComments(t *testing.T, name string, out map[commentKey]string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
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
}

func oneLine(doc *ast.CommentGroup) string {
	return strings.Join(strings.Fields(doc.Text()), " ")
}
