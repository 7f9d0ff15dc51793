// The addresses of pages. They are fragments, which browsers do not send.

export const policyLink = (name) => `#/policies/${encodeURIComponent(name)}`;
export const keyLink = (policy, key) => `#/keys?${new URLSearchParams({ policy, key })}`;
