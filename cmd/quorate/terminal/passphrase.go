package terminal

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/fault"
)

// Passphrase reads the passphrase from a file, without the line's end, or asks for it on the terminal; twice for a
// new one.
func Passphrase(cmd *cobra.Command, file string, isNew bool) (string, error) {
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", fault.File("read the passphrase: %w", err)
		}
		line := strings.TrimRight(string(text), "\r\n")
		if line == "" || strings.ContainsAny(line, "\r\n") {
			return "", fault.File("read the passphrase: %s: one line is needed, and not an empty one", file)
		}
		return line, nil
	}
	in, ok := cmd.InOrStdin().(*os.File)
	if !ok || !isTerminal(in) {
		return "", fault.Usage("there is no terminal to ask for the passphrase on: --passphrase-file FILE")
	}
	first, err := askHidden(cmd, in, "Passphrase: ")
	if err != nil || !isNew {
		return first, err
	}
	again, err := askHidden(cmd, in, "The same again: ")
	if err == nil && again != first {
		err = errors.New("read the passphrase: the two are not the same")
	}
	return first, err
}

// askHidden reads a line of the terminal without showing it.
func askHidden(cmd *cobra.Command, in *os.File, prompt string) (string, error) {
	show, err := hideInput(in)
	if err != nil {
		return "", fmt.Errorf("read the passphrase: hide what is typed: %w", err)
	}
	defer show()
	fmt.Fprint(cmd.ErrOrStderr(), prompt)
	text, err := readLine(cmd.Context(), in)
	fmt.Fprintln(cmd.ErrOrStderr())
	if err != nil {
		return "", errNoPassphrase
	}
	return text, nil
}

// errNoPassphrase says that a person was asked for one and ended the command.
var errNoPassphrase = errors.New("read the passphrase: none was given; nothing was changed")
