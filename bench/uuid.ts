/** Of the n-th object: the same in every run, and as long as one is. */
export function uuid(n: number): string {
  const digits = n.toString(16).padStart(12, '0');
  return `${digits.slice(4)}-5a1e-4b0b-8c3d-${digits}`;
}
