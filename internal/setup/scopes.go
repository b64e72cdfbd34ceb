package setup

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// CloudScope leaves it to IAM what a VM or an operator may do. Narrower access scopes cap it.
const CloudScope = "https://www.googleapis.com/auth/cloud-platform"

// NarrowScopes says whether access scopes, as URLs, lack CloudScope, and which there are, for people: none, or names
// such as devstorage.read_only.
func NarrowScopes(scopes []string) (has string, narrow bool) {
	var names []string
	for _, s := range scopes {
		if s != "" {
			names = append(names, path.Base(s))
		}
	}
	return cmp.Or(strings.Join(names, ", "), "none"), !slices.Contains(scopes, CloudScope)
}
