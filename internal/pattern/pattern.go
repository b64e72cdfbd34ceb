// Package pattern has regular expressions that are compiled when they are first needed. A length of 63 in one is 63
// copies of what may stand there: compiled at the program's start, those that check names allocated 2.2 MB in every
// process of ours, etcd's too, which checks none, and kept 0.6 MB of that.
package pattern

import (
	"regexp"
	"sync"
)

// Of is what compiles a regular expression at its first call and answers the same one from then on; it may be called by
// several at once. A text that is none panics there; test/house parses every one.
func Of(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
