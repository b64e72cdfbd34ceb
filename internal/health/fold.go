package health

import "slices"

// fold puts each finding below the deepest cause that it follows from, and sorts the causes: the worst first, and of
// equal ones the deeper.
func (j *judgement) fold(all []Finding) []Finding {
	slices.SortStableFunc(all, func(a, b Finding) int { return position(a.Name) - position(b.Name) })
	roots := []Finding{}
	for _, f := range all {
		if at := slices.IndexFunc(roots, func(root Finding) bool { return explains(root, f) }); at >= 0 {
			roots[at].Consequences = append(roots[at].Consequences, f)
			continue
		}
		roots = append(roots, f)
	}
	slices.SortStableFunc(roots, func(a, b Finding) int { return rank(a) - rank(b) })
	return roots
}

// explains reports whether f follows from root, or from what was folded below it.
func explains(root, f Finding) bool {
	e := entryOf(f.Name)
	direct := slices.Contains(e.anywhere, root.Name) || slices.Contains(e.here, root.Name) && covers(root, f)
	return direct || slices.ContainsFunc(root.Consequences, func(c Finding) bool { return explains(c, f) })
}

// covers reports whether root is about each replica that f is about. A finding without replicas is about the cluster.
func covers(root, f Finding) bool {
	return len(root.Replicas) == 0 ||
		!slices.ContainsFunc(f.Replicas, func(p string) bool { return !slices.Contains(root.Replicas, p) })
}

// rank is the level of the worst that a finding brings about.
func rank(f Finding) int {
	n := slices.Index([]Level{Broken, Warn, Note}, f.Level)
	for _, c := range f.Consequences {
		n = min(n, rank(c))
	}
	return n
}
