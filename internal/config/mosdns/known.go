package mosdns

// All that mosdns v5 has, to tell what is not built yet from a slip of the pen.
var (
	allPlugins = []string{
		"arbitrary", "cache", "domain_set", "ecs_handler", "fallback", "forward", "hosts", "http_server", "ip_set",
		"quic_server", "rate_limiter", "redirect", "reverse_lookup", "sequence", "sleep", "tcp_server", "udp_server",
	}
	allActions = []string{
		"accept", "black_hole", "cache", "debug_print", "drop_resp", "ecs", "forward", "forward_edns0opt", "goto",
		"ipset", "jump", "mark", "metrics_collector", "nftset", "prefer_ipv4", "prefer_ipv6", "query_summary",
		"reject", "return", "sleep", "ttl",
	}
	allMatchers = []string{
		"_false", "_true", "client_ip", "cname", "env", "has_resp", "has_wanted_ans", "mark", "ptr_ip", "qclass",
		"qname", "qtype", "random", "rcode", "resp_ip", "string_exp",
	}
)

// references are the arguments that name other plugins.
var references = map[string][]string{
	"domain_set": {"sets"},
	"ip_set":     {"sets"},
	"fallback":   {"primary", "secondary"},
}

// sleepTag is the plugin that is there without being written: half a second of
// nothing.
const (
	sleepTag  = "_sleep_500ms"
	sleepType = "sleep"
	sleepMS   = 500
)
