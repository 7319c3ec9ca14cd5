//go:build linux

package node

// PostgresName is the name of the image that Postgres describes.
const PostgresName = "waybill.test/postgres:15"

// Postgres is an image with PostgreSQL, its clients and pgbench, in /usr/lib/postgresql/15/bin, a shell, and a
// user postgres with the id 999.
var Postgres = Image{
	Name: PostgresName,
	Packages: []string{
		"coreutils", "dash", "grep", "sed", "postgresql-15", "postgresql-client-15",
		// What they are linked with.
		"libacl1", "libattr1", "libaudit1", "libbsd0", "libc6", "libcap-ng0", "libcap2", "libcom-err2", "libedit2", "libffi8",
		"libgcc-s1", "libgcrypt20", "libgmp10", "libgnutls30", "libgpg-error0", "libgssapi-krb5-2", "libhogweed6", "libicu72",
		"libidn2-0", "libk5crypto3", "libkeyutils1", "libkrb5-3", "libkrb5support0", "libldap-2.5-0", "liblz4-1", "liblzma5",
		"libmd0", "libnettle8", "libp11-kit0", "libpam0g", "libpcre2-8-0", "libpq5", "libreadline8", "libsasl2-2", "libselinux1",
		"libssl3", "libstdc++6", "libsystemd0", "libtasn1-6", "libtinfo6", "libunistring2", "libuuid1", "libxml2", "libxslt1.1",
		"libzstd1", "zlib1g",
	},
	Files:   map[string]string{"/etc/passwd": "root:x:0:0::/:/bin/sh\npostgres:x:999:999::/tmp:/bin/sh\n"},
	Folders: []string{"/tmp"},
}
