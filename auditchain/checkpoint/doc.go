// Package checkpoint signs and checks the state of an audit log.
//
// A checkpoint is a C2SP tlog-checkpoint (c2sp.org/tlog-checkpoint) inside a
// signed note (c2sp.org/signed-note): the log's origin, how many records it
// has and the root of the Merkle tree over them, signed with Ed25519 by the
// log and by any number of witnesses.
//
//	agentd.audit/reviewer/3f9a0c52
//	1024
//	CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=
//
//	— agentd.audit/reviewer/3f9a0c52 Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=
//
// Such a text reveals nothing about the records. It can be published, printed or
// given to a peer, and any later copy of the log can be compared with it.
//
// The package needs neither the database nor SQLite.
package checkpoint
