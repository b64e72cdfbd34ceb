// Package image tests what a master's disk image is made of, how it is baked and what it does at boot. What needs a
// baked image runs where QUORATE_IMAGE names the folder that images/bake.sh wrote (`make image-test`).
package image
