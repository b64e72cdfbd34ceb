package main

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	slsa "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/quorate/quorate/images/extra"
)

const (
	predicateType = "https://slsa.dev/provenance/v1"
	buildType     = home + "/images/bake@v1"
	builder       = home + "/images/bake.sh"
)

var wholeCommit = regexp.MustCompile(`^[0-9a-f]{40}$`)

// provenance says of which sources, packages and tools the image's files were made. It is not signed, and has no times:
// whoever bakes the same commit gets the same statement, and may sign it.
//
// Where not stamped, nothing but the caller's word ties quorate and pause to the commit, and the statement says so.
func provenance(p pins, programs []program, files []file, commit string, stamped bool) ([]byte, error) {
	source := &intoto.ResourceDescriptor{Name: "quorate", Uri: "git+" + home}
	if wholeCommit.MatchString(commit) {
		source.Digest = map[string]string{"gitCommit": commit}
	}
	made := []*intoto.ResourceDescriptor{source}
	for _, m := range p.programs {
		if slices.Contains(optional, m.name) && !contains(programs, m.name) {
			continue // the module of a program that this image does without
		}
		made = append(made, descriptor("go.mod and go.sum of "+m.name+" ("+m.version+", "+m.toolchain+")", "", m.sources))
	}
	made = append(made, debs(p.image, p.suites["image"])...)
	made = append(made, added(p.extra)...)
	origin := "quorate and pause bear the commit, by the Go linker"
	if !stamped {
		origin = "quorate or pause bears no commit: they are of it by the word of who baked"
	}
	given := map[string]any{"architecture": p.architecture, "commit": commit, "programs": origin}
	if p.extra.Hash != "" {
		given["extra"] = "sha256:" + p.extra.Hash
	}
	parameters, err := structpb.NewStruct(given)
	if err != nil {
		return nil, err
	}
	predicate := &slsa.Provenance{
		BuildDefinition: &slsa.BuildDefinition{BuildType: buildType, ExternalParameters: parameters,
			ResolvedDependencies: made},
		RunDetails: &slsa.RunDetails{Builder: &slsa.Builder{Id: builder,
			BuilderDependencies: debs(p.tools, p.suites["tools"])}},
	}
	if err := predicate.Validate(); err != nil {
		return nil, err
	}
	statement := &intoto.Statement{Type: intoto.StatementTypeUri, PredicateType: predicateType,
		Predicate: &structpb.Struct{}}
	for _, f := range files {
		statement.Subject = append(statement.Subject, descriptor(f.name, "", f.hash))
	}
	text, err := protojson.Marshal(predicate)
	if err != nil {
		return nil, err
	}
	if err := protojson.Unmarshal(text, statement.Predicate); err != nil {
		return nil, err
	}
	if err := statement.Validate(); err != nil {
		return nil, err
	}
	return stable(statement)
}

func debs(list []deb, suite string) (out []*intoto.ResourceDescriptor) {
	for _, d := range list {
		out = append(out, descriptor(d.name, d.url(suite), d.hash))
	}
	return out
}

// added is what a site adds: its folder, by the hash that the image bears, and each package.
func added(e extra.Extra) (out []*intoto.ResourceDescriptor) {
	if e.Hash == "" {
		return nil
	}
	out = append(out, descriptor("what a site adds (QUORATE_EXTRA)", "", e.Hash))
	for _, d := range e.Pinned {
		out = append(out, descriptor(d.Name, foreignURL(d), d.Hash))
	}
	return out
}

func descriptor(name, uri, hash string) *intoto.ResourceDescriptor {
	return &intoto.ResourceDescriptor{Name: name, Uri: uri, Digest: map[string]string{"sha256": hash}}
}

// stable is a message as JSON whose bytes are the same each time: protojson varies its white space on purpose.
func stable(m proto.Message) ([]byte, error) {
	text, err := protojson.Marshal(m)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", " "); err != nil {
		return nil, err
	}
	return []byte(strings.TrimSpace(out.String()) + "\n"), nil
}
