package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/package-url/packageurl-go"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"

	"github.com/quorate/quorate/images/extra"
)

// home is what names of ours begin with.
const home = "https://github.com/quorate/quorate"

// diskFile is the file of an image by which its bill knows it.
const diskFile = "disk.raw"

// noAssertion is SPDX's word for what is not claimed: licenses are in /usr/share/doc of the image.
const noAssertion = "NOASSERTION"

// bill is an SBOM that grows. Each part stands once, by its purl.
type bill struct {
	doc  *spdx.Document
	seen map[string]spdx.ElementID
}

// sbom lists the packages of the image, its programs, and the modules of each.
func sbom(p pins, programs []program, files []file, commit string) ([]byte, error) {
	b := &bill{seen: map[string]spdx.ElementID{}, doc: &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT",
		DocumentName: "quorate-master", CreationInfo: &spdx.CreationInfo{
			Created:  p.epoch.Format(time.RFC3339),
			Creators: []spdx.Creator{{CreatorType: "Tool", Creator: "quorate-images-describe"}},
		},
	}}
	var all []string
	for _, f := range files {
		all = append(all, f.hash)
	}
	b.doc.DocumentNamespace = home + "/spdx/" + shortHash(strings.Join(all, " "))
	disk, err := hashOfDisk(files)
	if err != nil {
		return nil, err
	}
	image := b.part("pkg:generic/quorate-master@"+commit+"?arch="+p.architecture, "quorate-master", commit, disk)
	b.last().PackageFileName = diskFile
	b.last().PrimaryPackagePurpose = "OPERATING-SYSTEM"
	b.relate("DOCUMENT", "DESCRIBES", image)
	for _, d := range p.image {
		b.relate(image, "CONTAINS", b.debian(d, p.suites["image"]))
	}
	loader, err := p.loader()
	if err != nil {
		return nil, err
	}
	b.relate(image, "CONTAINS", b.debian(loader, p.suites["tools"]))
	b.addExtra(image, p.extra)
	for _, program := range programs {
		b.relate(image, "CONTAINS", b.program(program, commit))
	}
	var out bytes.Buffer
	err = spdxjson.Write(b.doc, &out, spdxjson.Indent(" "), spdxjson.EscapeHTML(false))
	return out.Bytes(), err
}

// hashOfDisk is the one in SHA256SUMS.
func hashOfDisk(files []file) (string, error) {
	for _, f := range files {
		if f.name == diskFile {
			return f.hash, nil
		}
	}
	return "", fmt.Errorf("SHA256SUMS has no %s, so there is no image to describe", diskFile)
}

// debian adds a package of Debian.
func (b *bill) debian(d deb, suite string) spdx.ElementID {
	id := b.part(d.url(suite), d.name, d.version, d.hash)
	b.last().PackageSupplier = &spdx.Supplier{SupplierType: "Organization", Supplier: "Debian"}
	return id
}

// addExtra adds what a site adds: each package and each file.
func (b *bill) addExtra(image spdx.ElementID, e extra.Extra) {
	for _, d := range e.Pinned {
		b.relate(image, "CONTAINS", b.part(foreignURL(d), d.Name, d.Version, d.Hash))
	}
	for _, f := range e.Files {
		sum := sha256.Sum256(f.Content)
		hash := hex.EncodeToString(sum[:])
		url := packageurl.NewPackageURL(packageurl.TypeGeneric, "", path.Base(f.Path), "",
			packageurl.Qualifiers{{Key: "checksum", Value: "sha256:" + hash}}, "/"+f.Path).ToString()
		b.relate(image, "CONTAINS", b.part(url, "/"+f.Path, "sha256:"+hash, hash))
		b.last().PackageFileName = "/" + f.Path
		b.last().PrimaryPackagePurpose = "FILE"
	}
}

// program adds one with all that it was built from.
func (b *bill) program(p program, commit string) spdx.ElementID {
	version := p.version(commit)
	url := goURL(p.info.Main.Path, version, strings.TrimPrefix(p.info.Path, p.info.Main.Path))
	id := b.part(url, p.name, version, p.hash)
	b.last().PrimaryPackagePurpose = "APPLICATION"
	toolchain := strings.TrimPrefix(p.info.GoVersion, "go")
	modules := append(p.modules(), debug.Module{Path: "stdlib", Version: "v" + toolchain})
	slices.SortFunc(modules, func(a, b debug.Module) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Version, b.Version))
	})
	for _, m := range modules {
		url := goURL(m.Path, m.Version, "")
		module, known := b.seen[url]
		if !known {
			module = b.part(url, m.Path, m.Version, "")
			b.last().PrimaryPackagePurpose = "LIBRARY"
			if m.Sum != "" {
				b.last().PackageComment = "go.sum: " + m.Sum
			}
		}
		b.relate(id, "DEPENDS_ON", module)
	}
	return id
}

// goURL is the purl of a module, or of one of its folders.
func goURL(module, version, folder string) string {
	namespace, name := path.Split(module)
	return packageurl.NewPackageURL(packageurl.TypeGolang, strings.TrimSuffix(namespace, "/"), name, version, nil,
		strings.TrimPrefix(folder, "/")).ToString()
}

var notInIDs = regexp.MustCompile(`[^a-zA-Z0-9.-]+`)

// part adds a part that the bill does not have yet; hash is empty where it is no file.
func (b *bill) part(url, name, version, hash string) spdx.ElementID {
	id := spdx.ElementID(notInIDs.ReplaceAllString(name, "-") + "-" + shortHash(url))
	b.seen[url] = id
	part := &spdx.Package{
		PackageName: name, PackageSPDXIdentifier: id, PackageVersion: version, PackageDownloadLocation: noAssertion,
		PackageLicenseConcluded: noAssertion, PackageLicenseDeclared: noAssertion, PackageCopyrightText: noAssertion,
		PackageExternalReferences: []*spdx.PackageExternalReference{{Category: spdx.CategoryPackageManager,
			RefType: spdx.PackageManagerPURL, Locator: url}},
	}
	if hash != "" {
		part.PackageChecksums = []spdx.Checksum{{Algorithm: spdx.SHA256, Value: hash}}
	}
	b.doc.Packages = append(b.doc.Packages, part)
	return id
}

// last is the part that was added last.
func (b *bill) last() *spdx.Package { return b.doc.Packages[len(b.doc.Packages)-1] }

func (b *bill) relate(from spdx.ElementID, how string, to spdx.ElementID) {
	b.doc.Relationships = append(b.doc.Relationships, &spdx.Relationship{Relationship: how,
		RefA: spdx.DocElementID{ElementRefID: from}, RefB: spdx.DocElementID{ElementRefID: to}})
}

func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}
