"""Factors of long levels: C = K + ridge in forms that cost O(m), and the choice between them."""
