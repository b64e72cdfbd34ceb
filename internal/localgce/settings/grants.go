package settings

import (
	"slices"
	"strings"
)

// Grants says whether the project's policy gives an account a permission. Of conditions it knows nothing.
func (s *Settings) Grants(account, permission string) bool {
	return slices.ContainsFunc(s.ProjectPolicy, func(b Binding) bool { return s.gives(b, account, permission) })
}

// GrantsObject says whether a bucket's policy gives an account a permission on an object; an empty object is the bucket
// itself. Roles on the project do not count: quorate's documents give the masters none for storage.
func (s *Settings) GrantsObject(account, bucket, object, permission string) bool {
	name := "projects/_/buckets/" + bucket
	if object != "" {
		name += "/objects/" + object
	}
	return slices.ContainsFunc(s.BucketPolicy, func(b Binding) bool {
		return s.gives(b, account, permission) && b.Condition.holds(name)
	})
}

func (s *Settings) gives(b Binding, account, permission string) bool {
	return slices.Contains(b.Members, "serviceAccount:"+account) && slices.Contains(s.Roles[b.Role], permission)
}

// holds evaluates the conditions that quorate's documents write: resource.name.startsWith("…"), and several of them
// between ||. Any other expression does not hold, so a typing error takes a permission away.
func (c *Condition) holds(name string) bool {
	if c == nil {
		return true
	}
	const begin, end = `resource.name.startsWith("`, `")`
	held := false
	for _, term := range strings.Split(c.Expression, "||") {
		prefix, isPrefix := strings.CutPrefix(strings.TrimSpace(term), begin)
		prefix, ends := strings.CutSuffix(prefix, end)
		if !isPrefix || !ends || strings.Contains(prefix, `"`) {
			return false
		}
		held = held || strings.HasPrefix(name, prefix)
	}
	return held
}
