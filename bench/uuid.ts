/** Returns the UUID of the n-th object, which is the same in every run. */
export function uuid(n: number): string {
  const digits = n.toString(16).padStart(12, '0');
  return `${digits.slice(4)}-5a1e-4b0b-8c3d-${digits}`;
}
