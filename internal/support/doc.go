// Package support makes the one file that an operator sends with a report: what is known of a cluster and of a master,
// without its secrets.
//
//	file.go     File: the parts, bounded, as one tar.gz
//	fields.go   which fields of a document are taken, and what the value of each may be
//	shape.go    what a value of each shape looks like
//	configured.go  what a person has configured, which is never taken
//	words.go    what of a text is taken: words, numbers, addresses, and names that are known
//
// Guarantees: what goes in is listed, and all else is left out. A field that is not listed is left out, also one that a
// later version adds. So is a value that does not look as its field says. Of a text only words, numbers, addresses and
// the cluster's own names are taken, and nothing that follows a word such as "password".
//
// It does not know which text is secret. A password that is one plain word in the middle of a log's line, without
// anything that says so, is taken for a word: whoever sends the file can read it first. Nothing is gathered here.
package support
