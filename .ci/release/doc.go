/*
Release packs what a release consists of, without a container engine:

	release image     one image with all programs, for several platforms, as an OCI layout or in a registry
	release archives  programs to download, the chart, an inventory of what is in them, and checksums

The same commit, version and Go make the same bytes everywhere: files are in order and carry the time
of the commit. The version is that of --version, without a leading v.
*/
package main
