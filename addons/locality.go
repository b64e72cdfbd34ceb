package addons

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
)

// locality refuses kustomizations that name what is not in the folder: kustomize clones and downloads what looks like
// it, and runs programs. A master must come up without a network, and apply only what its image holds.
//
// It reads a kustomization as kustomize does, follows it to those that it names, and says which entry is refused.
type locality struct {
	files files
	seen  map[string]bool // folders
	// secrets says that one of them generates Secrets.
	secrets bool
}

// remote is how the entries begin that kustomize fetches, in any case of letters: a file by its URL, a repository by
// its URL, by a user and a host, or by the name of one well-known host.
var remote = regexp.MustCompile(`(?i)^\s*(git::|https?:|ssh:|file:|[a-z][a-z0-9-]*@|github\.com[/:])`)

// What entries may be.
const (
	onlyFile   = "a file of the add-ons' folder"
	onlyFolder = "a file or folder of the add-ons' folder"
	fileOrText = "a file of the add-ons' folder, or the text of a configuration"
)

// folder checks a folder's kustomization, and those that it leads to.
func (l *locality) folder(dir string) error {
	if l.seen[dir] {
		return nil // kustomize names the cycle
	}
	l.seen[dir] = true
	name := kustomization(l.files, dir)
	if name == "" {
		return errors.New("found no kustomization; allowed: a folder with one")
	}
	var k types.Kustomization
	if err := k.Unmarshal(l.files.contents[name]); err != nil {
		return fmt.Errorf("found text that is no kustomization: %s", quoted.ReplaceAllString(err.Error(), "..."))
	}
	k.FixKustomization() // as kustomize does: bases are resources, and such
	return l.kustomization(dir, &k)
}

func (l *locality) kustomization(dir string, k *types.Kustomization) error {
	if len(k.HelmCharts) > 0 || k.HelmGlobals != nil {
		return errors.New("helmCharts: found a chart; allowed: none, since helm would be run. Render it beforehand")
	}
	l.secrets = l.secrets || len(k.SecretGenerator) > 0
	for _, f := range []struct {
		name    string
		entries []string
		check   func(dir, entry string) error
	}{
		{"resources", k.Resources, l.resource}, {"components", k.Components, l.resource},
		{"generators", k.Generators, l.plugin}, {"transformers", k.Transformers, l.plugin},
		{"validators", k.Validators, l.plugin},
	} {
		for i, entry := range f.entries {
			if err := f.check(dir, entry); err != nil {
				return fmt.Errorf("%s[%d]: %w", f.name, i, err)
			}
		}
	}
	return localPaths(k)
}

// localPaths checks the fields of a kustomization that name a file.
func localPaths(k *types.Kustomization) error {
	refused := map[string]string{}
	check := func(at, entry string, parts ...string) {
		if slices.ContainsFunc(append(parts, entry), remote.MatchString) {
			refused[at] = entry
		}
	}
	list := func(field string, entries []string) {
		for i, entry := range entries {
			check(fmt.Sprintf("%s[%d]", field, i), entry)
		}
	}
	check("openapi.path", k.OpenAPI["path"])
	list("configurations", k.Configurations)
	list("crds", k.Crds)
	//lint:ignore SA1019 kustomize still reads it
	for i, p := range k.PatchesStrategicMerge {
		check(fmt.Sprintf("patchesStrategicMerge[%d]", i), string(p))
	}
	for i, p := range k.Patches {
		check(fmt.Sprintf("patches[%d].path", i), p.Path)
	}
	//lint:ignore SA1019 kustomize still reads it
	for i, p := range k.PatchesJson6902 {
		check(fmt.Sprintf("patchesJson6902[%d].path", i), p.Path)
	}
	for i, r := range k.Replacements {
		check(fmt.Sprintf("replacements[%d].path", i), r.Path)
	}
	sources := func(at string, s types.KvPairSources) {
		list(at+".envs", s.EnvSources)
		for i, entry := range s.FileSources {
			check(fmt.Sprintf("%s.files[%d]", at, i), entry, strings.Split(entry, "=")...) // KEY=FILE, or FILE
		}
	}
	for i, g := range k.ConfigMapGenerator {
		sources(fmt.Sprintf("configMapGenerator[%d]", i), g.KvPairSources)
	}
	for i, g := range k.SecretGenerator {
		sources(fmt.Sprintf("secretGenerator[%d]", i), g.KvPairSources)
	}
	for _, at := range slices.Sorted(maps.Keys(refused)) {
		return fmt.Errorf("%s: found %.200q; allowed: %s", at, refused[at], onlyFile)
	}
	return nil
}

// resource checks an entry that names a file, or a folder with a kustomization.
func (l *locality) resource(dir, entry string) error {
	target := path.Join(dir, entry)
	if remote.MatchString(entry) || path.IsAbs(entry) || !l.files.has(target) {
		return fmt.Errorf("found %.200q; allowed: %s", entry, onlyFolder)
	}
	if _, file := l.files.contents[target]; file {
		return nil
	}
	if err := l.folder(target); err != nil {
		return fmt.Errorf("%s: %w", cmp.Or(kustomization(l.files, target), target), err)
	}
	return nil
}

// plugin checks an entry of generators, transformers or validators: the configuration of something that is built into
// kustomize, as a file or as the text itself. A folder of them could be changed by its own kustomization, after the
// check.
func (l *locality) plugin(dir, entry string) error {
	if remote.MatchString(entry) || path.IsAbs(entry) {
		return fmt.Errorf("found %.200q; allowed: %s", entry, fileOrText)
	}
	text, file := l.files.contents[path.Join(dir, entry)]
	if !file {
		if !strings.Contains(entry, ":") {
			return fmt.Errorf("found %.200q; allowed: %s", entry, fileOrText)
		}
		text = []byte(entry)
	}
	objects, err := decode(text)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if kind := o.GetKind(); o.GetAPIVersion() != "builtin" || !slices.Contains(builtins(), kind) {
			return fmt.Errorf("found %s of %s; allowed, of builtin: %s", kind, o.GetAPIVersion(),
				strings.Join(builtins(), ", "))
		}
		l.secrets = l.secrets || o.GetKind() == "SecretGenerator"
		for _, key := range slices.Sorted(maps.Keys(o.GetAnnotations())) {
			if strings.HasPrefix(key, "config.kubernetes.io/function") ||
				strings.HasPrefix(key, "config.k8s.io/function") {
				return fmt.Errorf("%s: found the annotation %s; allowed: none, since a function would have to be run",
					o.GetKind(), key)
			}
		}
		if at := remoteValue("", o.Object); at != "" {
			return fmt.Errorf("%s: %s: found what would be fetched; allowed: %s", o.GetKind(), at, onlyFile)
		}
	}
	if len(objects) == 0 {
		return errors.New("found nothing; allowed: a configuration")
	}
	return nil
}

// builtins are the kinds that kustomize has built in, and that run no program.
func builtins() []string {
	names := slices.DeleteFunc(krusty.GetBuiltinPluginNames(), func(name string) bool {
		return name == "HelmChartInflationGenerator"
	})
	slices.Sort(names)
	return names
}

// remoteValue finds a value of a configuration that would be fetched. Values that go into objects as they are, are left
// out.
func remoteValue(at string, v any) string {
	switch v := v.(type) {
	case string:
		for _, part := range strings.Split(v, "=") {
			if remote.MatchString(part) {
				return at
			}
		}
	case []any:
		for i, item := range v {
			if found := remoteValue(fmt.Sprintf("%s[%d]", at, i), item); found != "" {
				return found
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			switch key {
			case "literals", "patch", "jsonOp", "labels", "annotations", "imageTag", "sourceValue", "value":
				continue
			}
			if found := remoteValue(strings.TrimPrefix(at+"."+key, "."), v[key]); found != "" {
				return found
			}
		}
	}
	return ""
}

// has says that there is a file of that path, or one below it.
func (f files) has(name string) bool {
	if _, there := f.contents[name]; there {
		return true
	}
	for other := range f.contents {
		if _, inside := below(name, other); inside && name != "" && name != "." {
			return true
		}
	}
	return false
}
