package addons

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// kustomization is the path of a folder's kustomization; empty: it has none.
func kustomization(f files, dir string) string {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		if _, there := f.contents[path.Join(dir, name)]; there {
			return path.Join(dir, name)
		}
	}
	return ""
}

// memoryRoot is where the files stand while they are built.
const memoryRoot = "/addons"

// build builds a kustomization out of the files that were read, in memory: what is built is what has the digest. It
// runs no plugins, and fetches nothing.
func build(f files, dir string) (out []*unstructured.Unstructured, err error) {
	if err := staysLocal(f); err != nil {
		return nil, err
	}
	memory := filesys.MakeFsInMemory()
	for name, content := range f.contents {
		if err := memory.WriteFile(path.Join(memoryRoot, name), content); err != nil {
			return nil, err
		}
	}
	defer func() {
		if p := recover(); p != nil { // it reads what people write
			out, err = nil, fmt.Errorf("kustomize broke down: %v", p)
		}
	}()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(memory, path.Join(memoryRoot, dir))
	if err != nil {
		return nil, err
	}
	for _, r := range built.Resources() {
		text, err := r.MarshalJSON()
		if err != nil {
			return nil, err
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(text); err != nil {
			return nil, err
		}
		out = append(out, u)
	}
	return out, nil
}

// fetched is a value that kustomize would fetch, with or without the name of a key before it.
var fetched = regexp.MustCompile(`^([^=/]+=)?https?:/`)

// staysLocal refuses kustomizations that name what is not in the folder: kustomize clones and downloads what it does
// not find. A master must come up without a network, and apply only what its image holds.
func staysLocal(f files) error {
	for _, name := range slices.Sorted(maps.Keys(f.contents)) {
		content := f.contents[name]
		isKustomization := slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(name))
		if !isKustomization && !strings.Contains(string(content), "apiVersion: builtin") {
			continue
		}
		var fields map[string]any
		if err := yaml.Unmarshal(content, &fields); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, field := range []string{"resources", "bases", "components"} {
			list, _ := fields[field].([]any)
			for i, entry := range list {
				if text, _ := entry.(string); isKustomization && !f.has(path.Join(path.Dir(name), text)) {
					return fmt.Errorf("%s: %s[%d]: found %q; allowed: a file or folder of the add-ons' folder", name,
						field, i, text)
				}
			}
		}
		if at, value := remote("", fields); at != "" {
			return fmt.Errorf("%s: %s: found %q; allowed: files of the add-ons' folder", name, at, value)
		}
	}
	return nil
}

// has says that there is a file of that path, or one below it.
func (f files) has(name string) bool {
	if _, there := f.contents[name]; there {
		return true
	}
	for other := range f.contents {
		if _, inside := below(name, other); inside && name != "" {
			return true
		}
	}
	return false
}

// remote finds a value that would be fetched. The fields that hold text of objects are left out.
func remote(at string, v any) (where, value string) {
	switch v := v.(type) {
	case string:
		if fetched.MatchString(v) {
			return at, v
		}
	case []any:
		for i, item := range v {
			if where, value := remote(fmt.Sprintf("%s[%d]", at, i), item); where != "" {
				return where, value
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			switch key {
			case "literals", "patch", "labels", "commonLabels", "commonAnnotations", "annotations", "images":
				continue
			}
			if where, value := remote(strings.TrimPrefix(at+"."+key, "."), v[key]); where != "" {
				return where, value
			}
		}
	}
	return "", ""
}
