package terminal

import (
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"
)

// PrintAs prints a value in the wanted form.
func PrintAs(w io.Writer, output string, v any, text func(io.Writer)) error {
	switch output {
	case "json":
		b, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%s\n", b)
		return err
	case "yaml":
		b, err := yaml.Marshal(v)
		if err != nil {
			return err
		}
		_, err = w.Write(b)
		return err
	}
	gathered, flush := newPage(w)
	text(gathered)
	return flush()
}

// TextOf is a text of PrintAs that is one format.
func TextOf(format string, args ...any) func(io.Writer) {
	return func(w io.Writer) { fmt.Fprintf(w, format, args...) }
}
