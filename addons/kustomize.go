package addons

import (
	"errors"
	"fmt"
	"path"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/filesys"
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
// runs no plugins, and fetches nothing: locality has refused what would.
func build(f files, dir string) (out []*unstructured.Unstructured, err error) {
	local := &locality{files: f, seen: map[string]bool{}}
	if err := local.folder(dir); err != nil {
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
	if err == nil {
		out, err = resources(built)
	}
	switch {
	case err != nil && local.secrets: // its words may hold a line of a Secret
		return nil, errors.New("kustomize cannot build it. Its error is not shown, because the kustomization generates " +
			"Secrets: run kustomize build on the folder")
	case err != nil:
		return nil, errors.New(quoted.ReplaceAllString(err.Error(), "..."))
	}
	return out, nil
}

func resources(built resmap.ResMap) (out []*unstructured.Unstructured, err error) {
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
