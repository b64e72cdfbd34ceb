package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// addOutput adds the flag that all listing commands share.
func addOutput(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", "", "json or yaml; text for people where it is not given")
}

// printAs prints a value in the wanted form.
func printAs(w io.Writer, output string, v any, text func(io.Writer)) error {
	switch output {
	case "":
		text(w)
		return nil
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
	default:
		return &usageError{fmt.Errorf("--output %q: json and yaml are allowed", output)}
	}
}

func cmpText(a, b string) int { return strings.Compare(a, b) }
