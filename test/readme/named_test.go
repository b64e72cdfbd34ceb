package readme

import (
	"go/ast"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What a wait, an error or a page tells a person to run exists, with the flags that the text gives it: it is read at
// three in the morning.
func TestCommandsThatTextsNameExist(t *testing.T) {
	named := namedCommands(t)
	if len(named) < 30 {
		t.Fatalf("found only %v: this test no longer knows how a text names a command", slices.Sorted(maps.Keys(named)))
	}
	for _, command := range slices.Sorted(maps.Keys(named)) {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			args := strings.Fields(command)[1:]
			out := helpOf(t, "quorate", args)
			// A word that is no command of a group is an error, but --help hides that.
			if word := firstUnused(out, args); strings.Contains(out, "\nAvailable Commands:\n") && word != "" {
				t.Errorf("%s: there is no command %q (%s)", named[command], command, word)
			}
			if args = append(args, ""); args[0] == "override" && args[1] != "" && !slices.Contains(args, "--reason") {
				t.Errorf("%s: %q lacks --reason, which it needs", named[command], command)
			}
		})
	}
}

// TestTheCommandsOfTheGuidesExist: lines of their own, in a fence or indented. Those of others, such as gcloud, nobody
// checks, and the pages say so.
func TestTheCommandsOfTheGuidesExist(t *testing.T) {
	line := regexp.MustCompile("(?m)^ *((?:quorate|make) [^|$\n]+)$")
	found := 0
	for _, page := range documents(t) {
		if page == "README.md" || page == "CONTRIBUTING.md" || page == "CHANGELOG.md" {
			continue // checked with more, or about the past
		}
		for _, m := range line.FindAllStringSubmatch(code(read(t, page)), -1) {
			found++
			command, _, _ := strings.Cut(m[1], " #")
			t.Run(page+"/"+command, func(t *testing.T) {
				t.Parallel()
				commandExists(t, words(t, command))
			})
		}
	}
	if found < 15 {
		t.Errorf("found only %d commands: this test no longer knows how pages show them", found)
	}
}

// code is what a page has in fences or indented as code.
func code(page string) string {
	var out []string
	fenced := false
	for line := range strings.SplitSeq(page, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		} else if fenced || strings.HasPrefix(line, "    ") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

// firstUnused is the first word of a command line that is neither a flag nor in the usage of the command that was
// found.
func firstUnused(out string, args []string) string {
	_, usage, _ := strings.Cut(out, "Usage:\n  quorate")
	usage, _, _ = strings.Cut(usage, "\n")
	for _, a := range args {
		if strings.HasPrefix(a, "-") {
			return ""
		}
		if !slices.Contains(strings.Fields(usage), a) {
			return a
		}
	}
	return ""
}

var (
	// inText is how Next texts and pages name a command, inPhrase how errors do, whose back-quotes would be awkward in
	// Go.
	inText   = regexp.MustCompile("`(quorate [^`\n]+)`")
	inPhrase = regexp.MustCompile(`[('](quorate [a-z][^'),;:\n]*)['),;:]`)
	// substitution is what a shell would put into a command line.
	substitution = regexp.MustCompile(`\$\([^)]*\)`)
)

// namedCommands are the command lines that texts of the program and pages name, with where.
func namedCommands(t *testing.T) map[string]string {
	out := map[string]string{}
	note := func(where string, found [][]string) {
		for _, m := range found {
			command, _, _ := strings.Cut(substitution.ReplaceAllString(m[1], "x"), " #")
			if !strings.Contains(command, "|") { // several commands at once
				out[strings.ReplaceAll(command, "…", "x")] = where
			}
		}
	}
	for _, page := range documents(t) {
		if page == "docs/from-kube-up.md" {
			continue // it names what is not there yet, and says so
		}
		note(page, inText.FindAllStringSubmatch(read(t, page), -1))
	}
	folders := []string{"etcdmember", "agent", "agent/*", "cmd/quorate", "cmd/quorate/*", "internal/record"}
	for _, folder := range folders {
		for _, f := range parseFolder(t, folder) {
			ast.Inspect(f, func(n ast.Node) bool {
				if l, ok := n.(*ast.BasicLit); ok {
					text := literal(l)
					note(folder, inText.FindAllStringSubmatch(text, -1))
					note(folder, inPhrase.FindAllStringSubmatch(text, -1))
				}
				return true
			})
		}
	}
	return out
}
