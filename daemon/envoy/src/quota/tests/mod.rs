//! The quota service without a network.

mod division;
mod simulation;
