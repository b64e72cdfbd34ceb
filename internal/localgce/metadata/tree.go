package metadata

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// accessToken is a leaf that has a new value each time it is read, and no part in recursive answers.
type accessToken struct{}

func (accessToken) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"access_token": "localgce." + rand.Text(), "expires_in": 3599,
		"token_type": "Bearer"})
}

// lookup finds the node at a path of keys, without leading or trailing slash.
func lookup(node any, path string) (any, bool) {
	if path == "" {
		return node, true
	}
	key, rest, _ := strings.Cut(path, "/")
	switch n := node.(type) {
	case map[string]any:
		if child, ok := n[key]; ok {
			return lookup(child, rest)
		}
	case named:
		if child, ok := n[key]; ok {
			return lookup(child, rest)
		}
	case []any:
		if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(n) {
			return lookup(n[i], rest)
		}
	}
	return nil, false
}

// isFolder says whether a node has a listing.
func isFolder(node any) bool {
	switch node.(type) {
	case map[string]any, named, []any:
		return true
	}
	return false
}

// listing is a folder's keys, one a line, folders with a slash.
func listing(node any) string {
	var b strings.Builder
	switch n := node.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(n)) {
			b.WriteString(k)
			if isFolder(n[k]) {
				b.WriteByte('/')
			}
			b.WriteByte('\n')
		}
	case named:
		for _, k := range slices.Sorted(maps.Keys(n)) {
			b.WriteString(k + "\n")
		}
	case []any:
		for i := range n {
			fmt.Fprintf(&b, "%d/\n", i)
		}
	}
	return b.String()
}

// text is a leaf as plain text.
func text(node any) string {
	switch n := node.(type) {
	case []string:
		return strings.Join(n, "\n") + "\n"
	case accessToken:
		out, _ := n.MarshalJSON()
		return string(out)
	}
	return fmt.Sprint(node)
}

// flat is a folder as "path value" lines, the recursive answer with alt=text.
func flat(node any, path string) string {
	join := func(key string) string { return strings.TrimPrefix(path+"/"+key, "/") }
	var b strings.Builder
	switch n := node.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(n)) {
			b.WriteString(flat(n[k], join(k)))
		}
	case named:
		for _, k := range slices.Sorted(maps.Keys(n)) {
			b.WriteString(join(k) + " " + n[k] + "\n")
		}
	case []any:
		for i := range n {
			b.WriteString(flat(n[i], join(strconv.Itoa(i))))
		}
	case []string:
		for i, s := range n {
			b.WriteString(join(strconv.Itoa(i)) + " " + s + "\n")
		}
	case accessToken:
	default:
		b.WriteString(path + " " + text(n) + "\n")
	}
	return b.String()
}

// jsonValue is a node as JSON knows it: keys camel-cased, but for attributes.
func jsonValue(node any) any {
	switch n := node.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, v := range n {
			if _, secret := v.(accessToken); !secret {
				out[camel(k)] = jsonValue(v)
			}
		}
		return out
	case named:
		if n == nil {
			return named{}
		}
	case []any:
		out := make([]any, len(n))
		for i, v := range n {
			out[i] = jsonValue(v)
		}
		return out
	}
	return node
}

func camel(key string) string {
	if strings.Contains(key, "@") {
		return key // an account's address
	}
	words := strings.Split(key, "-")
	for i, w := range words[1:] {
		if w != "" {
			words[i+1] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	return strings.Join(words, "")
}
