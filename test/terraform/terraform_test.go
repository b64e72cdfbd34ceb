// Package terraform parses the Terraform of docs/gce.md as Terraform does, and holds it against the document and the
// gcloud commands of the same page: the three ways have to make the same things. It is a module of its own, so that
// quorate needs no HCL. Whether Google's provider knows each argument cannot be checked here.
package terraform

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

const (
	page = "../../docs/gce.md"
	zone = "us-central1-a"
)

// guide is the page, and the configuration in it.
type guide struct {
	t *testing.T
	// text is the page with each command in one line.
	text, document string
	blocks         map[string]*hclsyntax.Block // by type and labels, as google_compute_disk.data
	context        *hcl.EvalContext
}

func read(t *testing.T) *guide {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	g := &guide{t: t, text: strings.ReplaceAll(string(data), "\\\n", ""), blocks: map[string]*hclsyntax.Block{}}
	g.document = g.part("yaml")
	file, faults := hclsyntax.ParseConfig([]byte(g.part("hcl")), "gce.md", hcl.InitialPos)
	if faults.HasErrors() {
		t.Fatal(faults)
	}
	for _, b := range file.Body.(*hclsyntax.Body).Blocks {
		name := strings.Join(append([]string{b.Type}, b.Labels...), ".")
		name = strings.TrimPrefix(name, "resource.")
		if g.blocks[name] != nil {
			t.Errorf("%s is there twice", name)
		}
		g.blocks[name] = b
	}
	g.evaluate()
	return g
}

// part is the first code block of a language.
func (g *guide) part(language string) string {
	g.t.Helper()
	found := regexp.MustCompile("(?ms)^```" + language + "\n(.*?)^```$").FindStringSubmatch(g.text)
	if found == nil {
		g.t.Fatalf("the page has no %s", language)
	}
	return found[1]
}

// evaluate makes what expressions refer to: variables, locals, and of resources that something is known only later.
func (g *guide) evaluate() {
	values := map[string]cty.Value{"each": cty.ObjectVal(map[string]cty.Value{"key": cty.StringVal(zone)})}
	g.context = &hcl.EvalContext{Variables: values, Functions: map[string]function.Function{
		"concat": stdlib.ConcatFunc, "substr": stdlib.SubstrFunc, "toset": stdlib.MakeToFunc(cty.Set(cty.String)),
		"file": function.New(&function.Spec{Params: []function.Parameter{{Name: "path", Type: cty.String}},
			Type: function.StaticReturnType(cty.String),
			Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return args[0], nil }})}}
	variables, locals := map[string]cty.Value{}, map[string]cty.Value{}
	for name, b := range g.blocks {
		kind, label, _ := strings.Cut(name, ".")
		switch {
		case kind == "variable":
			variables[label] = g.value(b.Body.Attributes["default"])
		case kind == "locals":
			for key, a := range b.Body.Attributes {
				locals[key] = g.value(a)
			}
		case strings.HasPrefix(kind, "google_"):
			values[kind] = cty.DynamicVal
		}
	}
	values["var"], values["local"] = cty.ObjectVal(variables), cty.ObjectVal(locals)
}

func (g *guide) value(a *hclsyntax.Attribute) cty.Value {
	g.t.Helper()
	v, faults := a.Expr.Value(g.context)
	if faults.HasErrors() {
		g.t.Error(faults)
	}
	return v
}

// at is the text of what path says: a block's name, the blocks in it, an attribute. Lists are joined with commas, and
// maps are KEY=VALUE.
func (g *guide) at(block string, path ...string) string {
	g.t.Helper()
	b := g.blocks[block]
	for n, name := range path {
		if b == nil {
			g.t.Errorf("the page has no %s %s", block, strings.Join(path[:n], " "))
			return ""
		}
		if a := b.Body.Attributes[name]; a != nil {
			return textOf(g.value(a))
		}
		at := slices.IndexFunc(b.Body.Blocks, func(b *hclsyntax.Block) bool { return b.Type == name })
		if at < 0 {
			g.t.Errorf("%s has no %s", block, strings.Join(path, " "))
			return ""
		}
		b = b.Body.Blocks[at]
	}
	return ""
}

func textOf(v cty.Value) string {
	var all []string
	switch kind := v.Type(); {
	case !v.IsWhollyKnown():
		return "known later"
	case kind.IsObjectType():
		for key, one := range v.AsValueMap() {
			all = append(all, key+"="+textOf(one))
		}
		slices.Sort(all)
		return strings.Join(all, ",")
	case v.CanIterateElements():
		for _, one := range v.AsValueSlice() {
			all = append(all, textOf(one))
		}
		return strings.Join(all, ",")
	}
	text, err := convert.Convert(v, cty.String)
	if err != nil {
		return err.Error()
	}
	return text.AsString()
}

// field is what the document says behind a key.
func (g *guide) field(key string) string {
	g.t.Helper()
	found := regexp.MustCompile(`(?m)^ *` + key + `: *\[?([^\]#\n]*?)\]? *(#.*)?$`).FindStringSubmatch(g.document)
	if found == nil {
		g.t.Errorf("the document has no %s", key)
		return ""
	}
	return strings.ReplaceAll(found[1], ", ", ",")
}

// flag is what a gcloud command of the page says behind a flag, with the shell's variables.
func (g *guide) flag(command, flag string) string {
	g.t.Helper()
	_, after, found := strings.Cut(g.text, "gcloud compute "+command+" ")
	line, _, _ := strings.Cut(after, "\n")
	for _, word := range strings.Fields(line) {
		if name, value, _ := strings.Cut(word, "="); found && name == "--"+flag {
			return strings.NewReplacer("$SA", g.field("serviceAccount"), "$z", "a").Replace(value)
		}
	}
	g.t.Errorf("the page has no gcloud compute %s with --%s", command, flag)
	return ""
}

// What an expression refers to is there: Terraform says so only once somebody runs it.
func TestWhatTheTerraformRefersToIsThere(t *testing.T) {
	g := read(t)
	for _, name := range slices.Sorted(maps.Keys(g.blocks)) {
		iterators := []string{"each"}
		_ = hclsyntax.VisitAll(g.blocks[name].Body, func(n hclsyntax.Node) hcl.Diagnostics {
			if b, is := n.(*hclsyntax.Block); is && b.Type == "dynamic" {
				iterators = append(iterators, b.Labels...)
			}
			return nil
		})
		_ = hclsyntax.VisitAll(g.blocks[name].Body, func(n hclsyntax.Node) hcl.Diagnostics {
			used, is := n.(*hclsyntax.ScopeTraversalExpr)
			if !is || slices.Contains(iterators, used.Traversal.RootName()) {
				return nil
			}
			root, next := used.Traversal.RootName(), ""
			if len(used.Traversal) > 1 {
				if step, is := used.Traversal[1].(hcl.TraverseAttr); is {
					next = step.Name
				}
			}
			there := g.blocks[root+"."+next] != nil
			switch root {
			case "var":
				there = g.blocks["variable."+next] != nil
			case "local":
				there = g.blocks["locals"] != nil && g.blocks["locals"].Body.Attributes[next] != nil
			}
			if !there {
				t.Errorf("%s refers to %s.%s, which is not there", name, root, next)
			}
			return nil
		})
	}
}

// Names, ranges, ports and sizes are those of the document.
func TestTheTerraformIsOfTheDocument(t *testing.T) {
	g := read(t)
	cluster := g.field("name")
	for _, c := range []struct {
		got, want string
	}{
		{g.at("provider.google", "project"), g.field("project")},
		{g.at("provider.google", "region"), g.field("region")},
		{g.at("variable.zones", "default"), g.field("zones")},
		{g.at("locals", "account"), g.field("serviceAccount")},
		{g.at("google_compute_firewall.api", "source_ranges"), g.field("apiSources") + "," + g.at("locals", "probes")},
		{g.at("google_compute_instance.master", "boot_disk", "initialize_params", "image"), g.field("image")},
		{g.at("google_compute_instance.master", "attached_disk", "device_name"), g.field("dataDisk")},
		{g.at("google_compute_instance.master", "service_account", "email"), g.field("serviceAccount")},
		{g.at("google_compute_instance.master", "labels"), "quorate-cluster=" + cluster},
		{g.at("google_compute_disk.data", "labels"), "quorate-cluster=" + cluster},
		{g.at("google_compute_instance.master", "metadata"), "quorate-cluster=cluster.yaml"},
		{strings.ToLower(g.at("google_compute_forwarding_rule.api", "load_balancing_scheme")), g.field("type")},
		{g.at("google_compute_forwarding_rule.api", "name"), cluster}, // as the agents' group
		{g.at("google_compute_network_endpoint_group.api", "name"), cluster},
		{g.at("google_compute_network_endpoint_group.api", "network_endpoint_type"), "GCE_VM_IP"},
		{g.at("google_compute_instance.master", "name"), "master-a"},
		{g.at("google_compute_disk.data", "name"), "master-a-data"},
	} {
		if c.got != c.want {
			t.Errorf("the Terraform says %q, and the document %q", c.got, c.want)
		}
	}
}

// What gcloud makes Terraform makes.
func TestTheTerraformMakesWhatGcloudMakes(t *testing.T) {
	g := read(t)
	const (
		masters  = "firewall-rules create prod-1-masters"
		api      = "firewall-rules create prod-1-api"
		probes   = "firewall-rules create prod-1-probes"
		check    = "health-checks create https prod-1"
		service  = "backend-services create prod-1"
		rule     = "forwarding-rules create prod-1"
		disk     = "disks create master-$z-data"
		instance = "instances create master-$z"
		vm       = "google_compute_instance.master"
	)
	allowed := func(block string) string {
		ports := strings.Split(g.at(block, "allow", "ports"), ",")
		for n, port := range ports {
			ports[n] = g.at(block, "allow", "protocol") + ":" + port
		}
		return strings.Join(ports, ",")
	}
	seconds := func(block, name string) string { return g.at(block, name) + "s" }
	for _, c := range []struct {
		got, command, flag string
	}{
		{allowed("google_compute_firewall.masters"), masters, "allow"},
		{allowed("google_compute_firewall.api"), api, "allow"},
		{allowed("google_compute_firewall.api"), probes, "allow"},
		{g.at("google_compute_firewall.masters", "source_service_accounts"), masters, "source-service-accounts"},
		{g.at("google_compute_firewall.masters", "target_service_accounts"), masters, "target-service-accounts"},
		{g.at("google_compute_firewall.api", "target_service_accounts"), api, "target-service-accounts"},
		{g.at("locals", "probes"), probes, "source-ranges"},
		{g.at("google_compute_address.api", "name"), rule, "address"},
		{seconds("google_compute_region_health_check.api", "check_interval_sec"), check, "check-interval"},
		{seconds("google_compute_region_health_check.api", "timeout_sec"), check, "timeout"},
		{g.at("google_compute_region_health_check.api", "healthy_threshold"), check, "healthy-threshold"},
		{g.at("google_compute_region_health_check.api", "unhealthy_threshold"), check, "unhealthy-threshold"},
		{g.at("google_compute_region_health_check.api", "https_health_check", "port"), check, "port"},
		{g.at("google_compute_region_health_check.api", "https_health_check", "request_path"), check, "request-path"},
		{g.at("google_compute_region_backend_service.api", "load_balancing_scheme"), service, "load-balancing-scheme"},
		{g.at("google_compute_region_backend_service.api", "protocol"), service, "protocol"},
		{g.at("google_compute_region_backend_service.api", "connection_draining_timeout_sec"), service,
			"connection-draining-timeout"},
		{g.at("google_compute_forwarding_rule.api", "load_balancing_scheme"), rule, "load-balancing-scheme"},
		{g.at("google_compute_forwarding_rule.api", "ports"), rule, "ports"},
		{g.at("google_compute_disk.data", "type"), disk, "type"},
		{g.at("google_compute_disk.data", "size") + "GB", disk, "size"},
		{g.at(vm, "machine_type"), instance, "machine-type"},
		{g.at(vm, "boot_disk", "initialize_params", "type"), instance, "boot-disk-type"},
		{g.at(vm, "boot_disk", "initialize_params", "size") + "GB", instance, "boot-disk-size"},
		{g.at(vm, "network_interface", "network"), instance, "network"},
		{g.at(vm, "scheduling", "on_host_maintenance"), instance, "maintenance-policy"},
		{g.at(vm, "service_account", "scopes"), instance, "scopes"},
		{g.at(vm, "service_account", "email"), instance, "service-account"},
		{g.at(vm, "labels"), instance, "labels"},
		{g.at(vm, "metadata"), instance, "metadata-from-file"},
	} {
		if want := g.flag(c.command, c.flag); c.got != want {
			t.Errorf("the Terraform says %q, and gcloud compute %s --%s=%s", c.got, c.command, c.flag, want)
		}
	}
	for name, want := range map[string]string{"can_ip_forward": "true", "shielded_instance_config.enable_vtpm": "true",
		"shielded_instance_config.enable_secure_boot": "false", "scheduling.automatic_restart": "true",
		"shielded_instance_config.enable_integrity_monitoring": "true"} {
		if got := g.at(vm, strings.Split(name, ".")...); got != want {
			t.Errorf("%s is %s", name, got)
		}
	}
}
