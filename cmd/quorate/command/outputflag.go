package command

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/fault"
)

// AddOutput adds the flag that all commands with an answer share. A value that is not known is refused before anything
// is done.
func AddOutput(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", "", "json or yaml; text for people where it is not given")
	CompleteFlag(cmd, "output", Fixed("json", "yaml"))
	cmd.PreRunE = func(*cobra.Command, []string) error {
		switch *output {
		case "", "json", "yaml":
			return nil
		}
		return fault.Usage("--output %q: json and yaml are allowed", *output)
	}
}

// WantedOutput is the form in which a command was asked to print, also where it failed; empty: text. Where the command
// line could not be taken apart, its words say it.
func WantedOutput(cmd *cobra.Command, args []string) string {
	f := cmd.Flags().Lookup("output")
	switch {
	case f != nil && f.Shorthand != "o":
		return "" // kubeconfig's is a file
	case f != nil && f.Changed:
		return structured(f.Value.String())
	}
	return structured(outputAmong(args))
}

// structured is an output that is not text.
func structured(output string) string {
	if output == "json" || output == "yaml" {
		return output
	}
	return ""
}

// outputAmong is the value of the last -o or --output among the words of a command line.
func outputAmong(args []string) (value string) {
	for i, arg := range args {
		switch after := ""; {
		case arg == "--":
			return value
		case arg == "-o" || arg == "--output":
			value = strings.Join(args[i+1:min(i+2, len(args))], "")
		default:
			for _, flag := range []string{"--output=", "-o=", "-o"} {
				if after, _ = strings.CutPrefix(arg, flag); after != arg {
					value = after
					break
				}
			}
		}
	}
	return value
}
